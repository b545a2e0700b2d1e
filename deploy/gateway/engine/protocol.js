'use strict'
// prisma-client-py speaks GraphQL to its engine; the WASM engine speaks Prisma's JSON protocol.

const graphql = require('./graphql')

// Longest first where one is the beginning of another.
const ACTIONS = [
  'findUnique', 'findFirst', 'findMany', 'createManyAndReturn', 'createMany', 'createOne',
  'updateMany', 'updateOne', 'upsertOne', 'deleteMany', 'deleteOne', 'aggregate', 'groupBy',
]
const RAW = ['queryRaw', 'executeRaw']
const PLAIN_IN_JSON_FILTER = ['path', 'string_contains', 'string_starts_with', 'string_ends_with', 'mode']

/** 'findManyUser' -> ['findMany', 'User']; raw operations have no model. */
function splitAction(name) {
  if (RAW.includes(name)) return [name, undefined]
  const action = ACTIONS.find((candidate) => name.startsWith(candidate))
  if (!action) throw new Error('unknown operation ' + name)
  const model = name.slice(action.length)
  const throwing = (action === 'findUnique' || action === 'findFirst') && model.endsWith('OrThrow')
  return throwing ? [action + 'OrThrow', model.slice(0, -'OrThrow'.length)] : [action, model]
}

const mapValues = (object, change) =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value, key)]))

// A bare string in a Json column is JSON text in GraphQL, but a JSON string in the JSON protocol:
// arguments of Json fields are tagged so that both mean the text.
function tagJson(value) {
  if (typeof value === 'string') return { $type: 'Json', value }
  if (typeof value === 'number' || typeof value === 'boolean') {
    return { $type: 'Json', value: JSON.stringify(value) }
  }
  if (Array.isArray(value)) return value.map(tagJson)
  if (!value) return value
  return mapValues(value, (inner, key) => (PLAIN_IN_JSON_FILTER.includes(key) ? inner : tagJson(inner)))
}

class Translator {
  /** @param models {model: {field: type}} */
  constructor(models) {
    this.models = models
  }

  tag(value, model) {
    if (Array.isArray(value)) return value.map((item) => this.tag(item, model))
    if (!value || typeof value !== 'object' || value.$type) return value
    const fields = this.models[model] || {}
    return mapValues(value, (inner, key) => {
      const type = fields[key]
      if (type === 'Json') return tagJson(inner)
      return this.tag(inner, type && this.models[type] ? type : model)
    })
  }

  // An argument's own name (where, data, …) is never a field, so tagging starts below it.
  tagArguments(args, model) {
    return mapValues(args, (value) => this.tag(value, model))
  }

  selection(fields, model) {
    const out = {}
    for (const field of fields || []) {
      const inner = (this.models[model] || {})[field.name]
      out[field.name] = field.selection
        ? { arguments: this.tagArguments(field.args, inner), selection: this.selection(field.selection, inner) }
        : true
    }
    return out
  }

  /** One GraphQL document -> {query for the engine, alias under which the answer is expected}. */
  request(document) {
    const fields = graphql.parse(document)
    if (fields.length !== 1) throw new Error('exactly one operation expected')
    const [field] = fields
    const [action, modelName] = splitAction(field.name)
    const args = modelName ? this.tagArguments(field.args, modelName) : field.args
    const query = { action, query: { arguments: args, selection: this.selection(field.selection, modelName) } }
    if (modelName) query.modelName = modelName
    return { query, alias: field.alias }
  }
}

function unwrap(value) {
  if (Array.isArray(value)) return value.map(unwrap)
  if (!value || typeof value !== 'object') return value
  if (typeof value.$type !== 'string' || !('value' in value)) return mapValues(value, unwrap)
  if (value.$type !== 'BigInt') return value.value
  const number = Number(value.value)
  return Number.isSafeInteger(number) ? number : value.value
}

/** The engine's answer to `request` -> the GraphQL answer. Raw results keep their type tags. */
function response(result, { query, alias }) {
  if (result.errors) return { errors: result.errors }
  const [value] = Object.values(result.data)
  return { data: { [alias]: RAW.includes(query.action) ? value : unwrap(value) } }
}

module.exports = { Translator, response }
