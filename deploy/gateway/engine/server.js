'use strict'
// The HTTP interface of Prisma's engine binary, as far as prisma-client-py uses it.

const http = require('http')

const text = (error) => String((error && error.message) || error)
const failure = (error, fields) => ({ errors: [{ error: text(error), user_facing_error: { message: text(error), ...fields } }] })

async function answer(engine, method, path, headers, body) {
  if (path === '/status') return [200, { status: 'ok' }]
  if (path.startsWith('/metrics')) return [200, { counters: [], gauges: [], histograms: [] }]
  if (path === '/' && method === 'POST') {
    try {
      return [200, await engine.query(JSON.parse(body), headers['x-transaction-id'])]
    } catch (error) {
      return [200, failure(error, { is_panic: false, meta: {}, error_code: 'P2009' })]
    }
  }
  if (path === '/transaction/start') return [200, await engine.begin(JSON.parse(body || '{}'))]
  const ending = /^\/transaction\/([^/]+)\/(commit|rollback)$/.exec(path)
  if (ending) return [200, await engine[ending[2]](decodeURIComponent(ending[1]))]
  return [404, { errors: [{ error: 'not found ' + path }] }]
}

async function handle(engine, request, response) {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  let status, body
  try {
    const path = request.url.split('?')[0]
    ;[status, body] = await answer(engine, request.method, path, request.headers, Buffer.concat(chunks).toString())
  } catch (error) {
    ;[status, body] = [500, failure(error, { is_panic: true })]
  }
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length })
  response.end(bytes)
}

function makeServer(engine) {
  const server = http.createServer((request, response) => {
    handle(engine, request, response).catch(() => response.destroy()) // the caller has gone
  })
  server.keepAliveTimeout = 120_000
  return server
}

module.exports = { makeServer }
