// Counts published ballots: the same as the folder members/tally, for a browser or for Node.
// read(text) → {options, ballots: [{receipts, ranking}], roll, percent, result}; tally(…) → result.

// -- Files ---------------------------------------------------------------------------------------
export function read (text) {
  const clean = text.replace(/^\uFEFF/, '')
  return clean.trimStart().startsWith('{') ? fromJson(clean) : fromCsv(clean)
}

function fromJson (text) {
  const found = JSON.parse(text)
  return {
    options: found.options.map(option => option.code),
    titles: Object.fromEntries(found.options.map(option => [option.code, option.title])),
    ballots: found.ballots.map(({ receipt, ranking }) => ({ receipt: receipt.en, es: receipt.es, ranking })),
    roll: found.roll ?? null,
    percent: found.quorum_percent ?? 30,
    result: found.result
  }
}

function fromCsv (text) {
  const [head, ...lines] = rows(text)
  if (head[0] !== 'receipt_es' || head[1] !== 'receipt_en' || head.length < 3) throw new Error('head')
  const options = head.slice(2)
  const ballots = lines.map(fields => {
    if (fields.length !== head.length) throw new Error('fields')
    return { receipt: fields[1], es: fields[0], ranking: fromRanks(options, fields.slice(2)) }
  })
  return { options, titles: {}, ballots, roll: null, percent: 30, result: null }
}

function rows (text) {
  const found = []
  let row = []; let field = ''; let quoted = false
  for (let at = 0; at < text.length; at++) {
    const sign = text[at]
    if (quoted) {
      if (sign !== '"') field += sign
      else if (text[at + 1] === '"') { field += '"'; at++ } else quoted = false
    } else if (sign === '"') quoted = true
    else if (sign === ',') { row.push(field); field = '' } else if (sign === '\n') {
      found.push([...row, field]); row = []; field = ''
    } else if (sign !== '\r') field += sign
  }
  if (row.length || field) found.push([...row, field])
  return found.filter(one => one.length > 1)
}

function fromRanks (options, ranks) {
  const groups = new Map()
  options.forEach((option, place) => {
    const rank = ranks[place].trim()
    if (!rank) return
    if (!/^[1-9][0-9]*$/.test(rank)) throw new Error('rank')
    const number = Number(rank)
    groups.set(number, [...(groups.get(number) ?? []), option])
  })
  return [...groups.keys()].sort((a, b) => a - b).map(rank => groups.get(rank))
}

// What a count does not settle: receipts on more than one ballot, more ballots than could vote.
export function doubts ({ ballots, roll }) {
  const seen = new Set()
  const twice = new Set()
  for (const { receipt } of ballots) (seen.has(receipt) ? twice : seen).add(receipt)
  const many = roll !== null && ballots.length > roll
  return twice.size || many ? { twice: [...twice].sort(), roll, ballots: ballots.length } : null
}

// -- Schulze's method ----------------------------------------------------------------------------
export function compare (options, rankings) {
  const size = options.length
  const place = new Map(options.map((option, number) => [option, number]))
  const pairwise = Array.from({ length: size }, () => new Array(size).fill(0))
  const first = new Array(size).fill(0)
  for (const ranking of rankings) {
    const level = new Array(size).fill(Infinity) // without a number: below all that have one
    let depth = 0
    for (const group of ranking) {
      if (!group.length) continue
      for (const option of group) {
        const number = place.get(option)
        if (number === undefined || level[number] !== Infinity) throw new Error(`ballot: ${option}`)
        level[number] = depth
        if (depth === 0) first[number]++
      }
      depth++
    }
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < size; j++) if (level[i] < level[j]) pairwise[i][j]++
    }
  }
  return { pairwise, first }
}

export function strongest (pairwise) {
  const size = pairwise.length
  const paths = pairwise.map((row, i) => row.map((more, j) => Math.max(0, more - pairwise[j][i])))
  for (let via = 0; via < size; via++) {
    for (let i = 0; i < size; i++) {
      if (i === via) continue
      for (let j = 0; j < size; j++) {
        if (j !== i) paths[i][j] = Math.max(paths[i][j], Math.min(paths[i][via], paths[via][j]))
      }
    }
  }
  return paths
}

function levelsOf (options, paths) {
  let left = options.map((_, number) => number)
  const levels = []
  while (left.length) {
    const best = left.filter(i => left.every(j => paths[i][j] >= paths[j][i]))
    levels.push(best.map(i => options[i]).sort())
    left = left.filter(i => !best.includes(i))
  }
  return levels
}

// -- Quorum, ties, draw --------------------------------------------------------------------------
export function tally ({ options, ballots, roll, percent }) {
  const { pairwise, first } = compare(options, ballots.map(ballot => ballot.ranking))
  const paths = strongest(pairwise)
  const levels = levelsOf(options, paths)
  const digest = digestOf(ballots)
  const [chosen, tieRule] = decide(options, levels[0], first, digest)
  const quorum = roll === null ? null : Math.ceil(roll * percent / 100)
  const met = quorum === null || ballots.length >= quorum
  return {
    options, ballots: ballots.length, roll, quorum, quorum_met: met, winner: met ? chosen : 'keep',
    tied: tieRule ? levels[0] : [], tie_rule: tieRule, first, levels, pairwise, paths, digest
  }
}

function decide (options, tied, first, seed) {
  if (tied.length === 1) return [tied[0], '']
  if (tied.includes('keep')) return ['keep', 'current']
  const firsts = tied.map(option => first[options.indexOf(option)])
  const best = tied.filter((_, number) => firsts[number] === Math.max(...firsts))
  if (best.length === 1) return [best[0], 'first']
  const drawn = best.map(option => [sha256(`${seed} ${option}`), option]).sort()
  return [drawn[0][1], 'draw']
}

export function digestOf (ballots) {
  const lines = ballots.map(({ receipt, ranking }) =>
    `${receipt} ${ranking.map(group => [...group].sort().join('=')).join('>')}\n`)
  return sha256(lines.sort().join(''))
}

// -- SHA-256 (FIPS 180-4): browsers have it only on https ------------------------------------------
function primes (count) {
  const found = []
  for (let n = 2; found.length < count; n++) if (found.every(prime => n % prime)) found.push(n)
  return found
}
const fraction = root => Math.floor((root - Math.floor(root)) * 2 ** 32) | 0
const K = primes(64).map(prime => fraction(Math.cbrt(prime)))
const START = primes(8).map(prime => fraction(Math.sqrt(prime)))
const turn = (word, by) => word >>> by | word << 32 - by

export function sha256 (text) {
  const bytes = new TextEncoder().encode(text)
  const padded = new Uint8Array((bytes.length + 72 >> 6) << 6)
  padded.set(bytes)
  padded[bytes.length] = 128
  const view = new DataView(padded.buffer)
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29))
  view.setUint32(padded.length - 4, bytes.length << 3)
  let hash = START
  for (let block = 0; block < padded.length; block += 64) hash = mix(hash, view, block)
  return hash.map(word => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

function mix (hash, view, block) {
  const w = Array.from({ length: 16 }, (_, n) => view.getInt32(block + 4 * n))
  for (let n = 16; n < 64; n++) {
    const [a, b] = [w[n - 15], w[n - 2]]
    w[n] = w[n - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >>> 3) +
      w[n - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >>> 10) | 0
  }
  let [a, b, c, d, e, f, g, h] = hash
  for (let n = 0; n < 64; n++) {
    const one = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + (e & f ^ ~e & g) + K[n] + w[n] | 0
    const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + (a & b ^ a & c ^ b & c) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, d + one | 0, c, b, a, one + two | 0]
  }
  return [a, b, c, d, e, f, g, h].map((word, n) => word + hash[n] | 0)
}
