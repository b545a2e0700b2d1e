'use strict'
// Prisma's driver adapter interface over a pool of `pg` connections.

const os = require('os')
const pg = require('pg')
const { ok, err } = require('@prisma/driver-adapter-utils')
const { columnType, types, toArgument } = require('./pg-types')

class Queryable {
  constructor(client) {
    this.client = client
    this.provider = 'postgres'
    this.adapterName = 'pg-loopback'
  }

  async run({ sql, args }) {
    try {
      return ok(await this.client.query({ text: sql, values: args.map(toArgument), rowMode: 'array', types }))
    } catch (error) {
      if (!error || typeof error.code !== 'string' || typeof error.severity !== 'string') throw error
      const { code, severity, message, detail, column, hint } = error
      return err({ kind: 'Postgres', code, severity, message, detail, column, hint })
    }
  }

  async queryRaw(query) {
    return (await this.run(query)).map((result) => ({
      columnNames: result.fields.map((field) => field.name),
      columnTypes: result.fields.map((field) => columnType(field.dataTypeID)),
      rows: result.rows,
    }))
  }

  async executeRaw(query) {
    return (await this.run(query)).map((result) => result.rowCount ?? 0)
  }
}

// The engine itself sends COMMIT and ROLLBACK; these only give the connection back.
class Transaction extends Queryable {
  constructor(client) {
    super(client)
    this.options = { usePhantomQuery: false }
  }

  async commit() {
    this.client.release()
    return ok(undefined)
  }

  async rollback() {
    this.client.release()
    return ok(undefined)
  }
}

class Adapter extends Queryable {
  constructor(pool, schema) {
    super(pool)
    this.schema = schema
  }

  getConnectionInfo() {
    return ok({ schemaName: this.schema })
  }

  async startTransaction() {
    return ok(new Transaction(await this.client.connect()))
  }
}

/** Prisma's connection URL, whose parameters `pg` would not all understand -> settings of a pool. */
function poolSettings(databaseUrl) {
  const url = new URL(databaseUrl)
  const given = Object.fromEntries(url.searchParams)
  const number = (name, otherwise) => (Number.isFinite(Number(given[name] || NaN)) ? Number(given[name]) : otherwise)
  const schema = given.schema || 'public'
  url.search = ''
  if (given.sslmode && !['disable', 'prefer'].includes(given.sslmode)) url.searchParams.set('sslmode', given.sslmode)
  return {
    schema,
    host: url.hostname,
    port: Number(url.port || 5432),
    settings: {
      connectionString: url.toString(),
      max: number('connection_limit', os.cpus().length * 2 + 1),
      connectionTimeoutMillis: Math.max(number('pool_timeout', 10), number('connect_timeout', 5)) * 1000,
      idleTimeoutMillis: 300_000,
      keepAlive: true,
      application_name: given.application_name || 'litellm',
      options: `-c timezone=UTC -c search_path="${schema}"` + (given.options ? ' ' + given.options : ''),
    },
  }
}

function makePool(settings) {
  const pool = new pg.Pool(settings)
  pool.on('error', (error) => console.error(`idle database connection: ${error.message}`))
  return pool
}

module.exports = { Adapter, makePool, poolSettings }
