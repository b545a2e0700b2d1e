'use strict'
// What the engine has to know of schema.prisma: each model's field types, and where the database is.

const fs = require('fs')

/** The schema, as prisma-client-py hands it to an engine: in PRISMA_DML or in a file. */
function read(env) {
  if (env.PRISMA_DML) return Buffer.from(env.PRISMA_DML, 'base64').toString()
  return fs.readFileSync(env.PRISMA_DML_PATH, 'utf8')
}

/** {model: {field: type}} of every model in the schema. */
function fieldTypes(schema) {
  const models = {}
  for (const [, name, body] of schema.matchAll(/^model\s+(\w+)\s*\{([\s\S]*?)^\}/gm)) {
    models[name] = {}
    for (const line of body.split('\n')) {
      if (/^\s*(\/\/|@@)/.test(line)) continue
      const field = /^\s*(\w+)\s+(\w+)(\[\])?\??/.exec(line)
      if (field) models[name][field[1]] = field[2]
    }
  }
  return models
}

/** The database's URL: the override that the client passes, else the schema's datasource. */
function datasourceUrl(schema, env) {
  if (env.OVERWRITE_DATASOURCES) {
    let text = env.OVERWRITE_DATASOURCES
    if (!text.trim().startsWith('[')) text = Buffer.from(text, 'base64').toString()
    const [first] = JSON.parse(text)
    if (first && first.url) return first.url
  }
  const found = /datasource\s+\w+\s*\{[^}]*?\burl\s*=\s*(?:env\("([^"]+)"\)|"([^"]+)")/s.exec(schema)
  const url = found && (found[2] || env[found[1]])
  if (!url) throw new Error('The schema names no database URL and the environment has none.')
  return url
}

module.exports = { read, fieldTypes, datasourceUrl }
