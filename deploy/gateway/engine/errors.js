'use strict'
// Errors of the database driver, which the WASM engine knows by number only, in Prisma's own shape.

const LOST = /ECONN|ENOTFOUND|terminat|timeout|closed|not queryable/i

/** P1001 means "can't reach the database": LiteLLM waits and retries on it, on others it gives up. */
function userFacing(cause, { host, port }) {
  const message = cause ? String(cause.message || cause.code || cause) : 'unknown'
  if (!LOST.test(`${message} ${cause && cause.code}`)) {
    return { is_panic: false, error_code: 'P2010', message, meta: {} }
  }
  return {
    is_panic: false,
    error_code: 'P1001',
    message: `Can't reach database server at ${host}:${port}: ${message}`,
    meta: { database_host: host, database_port: port },
  }
}

/** `result` with each numbered driver error replaced by the error that the driver raised. */
function explain(result, registry, address) {
  if (!result.errors) return result
  const errors = result.errors.map((error) => {
    const facing = error && error.user_facing_error
    if (!facing || facing.error_code !== 'P2036' || typeof (facing.meta || {}).id !== 'number') return error
    const raised = registry.registeredErrors[facing.meta.id]
    delete registry.registeredErrors[facing.meta.id]
    const explained = userFacing(raised && raised.error, address)
    return { error: explained.message, user_facing_error: explained }
  })
  return { ...result, errors }
}

module.exports = { explain }
