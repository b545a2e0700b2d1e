'use strict'
// Prisma's Rust query engine 5.17.0, compiled to WASM as it ships in the npm package @prisma/client.

const fs = require('fs')
const path = require('path')
const { bindAdapter } = require('@prisma/driver-adapter-utils')
const datamodel = require('./datamodel')
const { explain } = require('./errors')
const { Adapter, makePool, poolSettings } = require('./pg-adapter')
const { Translator, response } = require('./protocol')

const NO_TRACE = JSON.stringify({})

function load(options, adapter) {
  const runtime = path.join(path.dirname(require.resolve('@prisma/client/package.json')), 'runtime')
  const bindings = require(path.join(runtime, 'query_engine_bg.postgresql.js'))
  const code = new WebAssembly.Module(fs.readFileSync(path.join(runtime, 'query_engine_bg.postgresql.wasm')))
  const instance = new WebAssembly.Instance(code, { './query_engine_bg.js': bindings })
  bindings.__wbg_set_wasm(instance.exports)
  return new bindings.QueryEngine(options, () => {}, adapter) // its log would repeat values of queries
}

class Engine {
  static async start(env) {
    const schema = datamodel.read(env)
    const database = poolSettings(datamodel.datasourceUrl(schema, env))
    const engine = new Engine()
    engine.address = { host: database.host, port: database.port }
    engine.pool = makePool(database.settings)
    engine.adapter = bindAdapter(new Adapter(engine.pool, database.schema))
    engine.translator = new Translator(datamodel.fieldTypes(schema))
    engine.wasm = load(
      {
        datamodel: schema, env, logQueries: false, logLevel: 'error', ignoreEnvVarErrors: true,
        datasourceOverrides: {}, configDir: process.cwd(), engineProtocol: 'json',
      },
      engine.adapter,
    )
    await engine.wasm.connect(NO_TRACE)
    return engine
  }

  explain(result) {
    return explain(result, this.adapter.errorRegistry, this.address)
  }

  async ask(request, transaction) {
    return this.explain(JSON.parse(await this.wasm.query(JSON.stringify(request), NO_TRACE, transaction)))
  }

  /** Answers one document, or a batch of them, in or out of a transaction. */
  async query(body, transaction) {
    if (Array.isArray(body.batch)) return this.batch(body, transaction)
    const request = this.translator.request(body.query)
    return response(await this.ask(request.query, transaction), request)
  }

  async batch(body, transaction) {
    const requests = body.batch.map((part) => this.translator.request(part.query))
    if (!requests.length) return { batchResult: [] }
    const queries = requests.map((request) => request.query)
    const result = await this.ask({ batch: queries, transaction: body.transaction ? {} : undefined }, transaction)
    if (result.errors) return result
    return { batchResult: result.batchResult.map((part, n) => response(part, requests[n])) }
  }

  /** Times in ms; the defaults are Prisma's. */
  async begin({ max_wait = 2000, timeout = 5000, isolation_level } = {}) {
    const wanted = JSON.stringify({ max_wait, timeout, isolation_level })
    return this.transactionResult(await this.wasm.startTransaction(wanted, NO_TRACE))
  }

  async commit(id) {
    return this.transactionResult(await this.wasm.commitTransaction(id, NO_TRACE))
  }

  async rollback(id) {
    return this.transactionResult(await this.wasm.rollbackTransaction(id, NO_TRACE))
  }

  transactionResult(text) {
    const result = JSON.parse(text)
    if (!result || typeof result !== 'object') return {}
    if (!result.error_code) return result
    return this.explain({ errors: [{ error: result.message, user_facing_error: result }] })
  }

  async close() {
    await this.pool.end().catch(() => {})
  }
}

module.exports = { Engine }
