'use strict'
// The part of GraphQL that prisma-client-py writes, read into fields {alias, name, args, selection}.

const SPACE = /[\s,]/
const NAME = /[_A-Za-z][_0-9A-Za-z]*/y
const NUMBER = /-?\d+(\.\d+)?([eE][+-]?\d+)?/y
const STRING = /"(?:[^"\\]|\\.)*"/sy
const WORDS = { true: true, false: false, null: null }

class Reader {
  constructor(source) {
    this.source = source
    this.at = 0
  }

  fail(wanted) {
    // No excerpt of the query: its values are keys' hashes and members' metadata.
    throw new Error(`GraphQL: expected ${wanted} at ${this.at}`)
  }

  peek() {
    while (this.at < this.source.length && SPACE.test(this.source[this.at])) this.at++
    return this.source[this.at]
  }

  eat(char) {
    if (this.peek() !== char) this.fail(char)
    this.at++
  }

  match(pattern) {
    this.peek()
    pattern.lastIndex = this.at
    const found = pattern.exec(this.source)
    if (found) this.at = pattern.lastIndex
    return found
  }

  name() {
    return (this.match(NAME) || this.fail('a name'))[0]
  }

  list(close, readOne) {
    this.at++
    while (this.peek() !== close) {
      if (this.at >= this.source.length) this.fail(close)
      readOne()
    }
    this.at++
  }

  pairs(close) {
    const out = {}
    this.list(close, () => {
      const key = this.name()
      this.eat(':')
      out[key] = this.value()
    })
    return out
  }

  value() {
    const next = this.peek()
    if (next === '"') return JSON.parse((this.match(STRING) || this.fail('a string'))[0])
    if (next === '{') return this.pairs('}')
    if (next === '[') {
      const items = []
      this.list(']', () => items.push(this.value()))
      return items
    }
    const number = this.match(NUMBER)
    if (number) return toNumber(number)
    const word = this.name()
    return word in WORDS ? WORDS[word] : word
  }

  selection() {
    if (this.peek() !== '{') this.fail('{')
    const fields = []
    this.list('}', () => fields.push(this.field()))
    return fields
  }

  field() {
    const alias = this.name()
    let name = alias
    if (this.peek() === ':') {
      this.at++
      name = this.name()
    }
    const args = this.peek() === '(' ? this.pairs(')') : {}
    return { alias, name, args, selection: this.peek() === '{' ? this.selection() : null }
  }
}

function toNumber([text, fraction, exponent]) {
  const number = Number(text)
  const whole = fraction === undefined && exponent === undefined
  return whole && !Number.isSafeInteger(number) ? { $type: 'BigInt', value: text } : number
}

/** The fields of one `query` or `mutation` document. */
function parse(source) {
  const reader = new Reader(source)
  if (reader.peek() !== '{') {
    if (!['query', 'mutation'].includes(reader.name())) reader.fail('query or mutation')
    if (reader.peek() !== '{') reader.name()
  }
  return reader.selection()
}

module.exports = { parse }
