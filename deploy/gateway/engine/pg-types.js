'use strict'
// Postgres type ids -> Prisma's column types, and the text of each value -> what the engine expects.

const pg = require('pg')
const { parse: parseArray } = require('postgres-array')
const { ColumnTypeEnum: C } = require('@prisma/driver-adapter-utils')

const COLUMNS = {
  16: C.Boolean, 17: C.Bytes, 20: C.Int64, 21: C.Int32, 23: C.Int32, 26: C.Int64, 114: C.Json,
  700: C.Float, 701: C.Double, 790: C.Numeric, 1082: C.Date, 1083: C.Time, 1114: C.DateTime,
  1184: C.DateTime, 1266: C.Time, 1700: C.Numeric, 2950: C.Uuid, 3802: C.Json,
}
const ARRAYS = {
  199: C.JsonArray, 1000: C.BooleanArray, 1001: C.BytesArray, 1002: C.TextArray, 1003: C.TextArray,
  1005: C.Int32Array, 1007: C.Int32Array, 1009: C.TextArray, 1014: C.TextArray, 1015: C.TextArray,
  1016: C.Int64Array, 1021: C.FloatArray, 1022: C.DoubleArray, 1028: C.Int64Array,
  1115: C.DateTimeArray, 1182: C.DateArray, 1183: C.TimeArray, 1185: C.DateTimeArray,
  1231: C.NumericArray, 2951: C.UuidArray, 3807: C.JsonArray,
}

const asIs = (text) => text
const bool = (text) => text === 't'
const bytes = (text) => Array.from(pg.types.getTypeParser(17)(text))
const money = (text) => text.replace(/[^0-9.-]/g, '')
const withoutZone = (text) => text.replace(/[+-]\d\d(:\d\d)?$/, '') // the session runs in UTC
const array = (parseItem) => (text) => parseArray(text, parseItem)

const PARSERS = {
  16: bool, 17: bytes, 21: Number, 23: Number, 700: Number, 701: Number, 790: money,
  1184: withoutZone, 1266: withoutZone, 1000: array(bool), 1001: array(bytes), 1005: array(Number),
  1007: array(Number), 1021: array(Number), 1022: array(Number), 1185: array(withoutZone),
}

const columnType = (oid) => COLUMNS[oid] ?? ARRAYS[oid] ?? C.Text
const types = { getTypeParser: (oid) => PARSERS[oid] || (oid in ARRAYS ? array(asIs) : asIs) }

/** Views into the engine's memory become buffers, which is what `pg` sends as bytes. */
function toArgument(value) {
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  return Array.isArray(value) ? value.map(toArgument) : value
}

module.exports = { columnType, types, toArgument }
