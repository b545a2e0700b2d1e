// The page "count again": fetches all ballots or takes a file, counts them here, shows the table,
// and compares with what the file says came out. The words of a receipt stay in this browser.
import { doubts, read, tally } from './tally.js'

const page = document.getElementById('recount')
const words = page.dataset
const COMPARED = ['pairwise', 'paths', 'levels', 'first', 'quorum', 'winner', 'tied', 'tie_rule', 'digest']
let counted = null

function say (...lines) {
  document.getElementById('said').replaceChildren(...lines.map(([tone, text]) => {
    const line = document.createElement('p')
    line.className = `notice ${tone}`
    line.textContent = text
    return line
  }))
}

// The letter of an option, by its place on the ballot: as on every other page.
const mark = number => (number < 26 ? '' : mark(Math.floor(number / 26) - 1)) + String.fromCharCode(65 + number % 26)

function cell (tag, text, end) {
  const found = document.createElement(tag)
  found.textContent = text
  if (tag === 'th') found.scope = end ? 'col' : 'row'
  if (end) found.className = 'end'
  return found
}

function row (...cells) {
  const found = document.createElement('tr')
  found.append(...cells)
  return found
}

function table (result, titles) {
  const made = document.createElement('table')
  const head = made.createTHead()
  const body = made.createTBody()
  const number = value => value.toLocaleString(document.documentElement.lang)
  made.className = 'matrix'
  made.id = 'recounted'
  const corner = cell('th', words.label, true)
  corner.className = ''
  head.append(row(corner, ...result.options.map((_, n) => cell('th', mark(n), true))))
  result.options.forEach((option, i) => body.append(row(
    cell('th', `${mark(i)}. ${titles[option] ?? option}`),
    ...result.pairwise[i].map((more, j) => cell('td', i === j ? '–' : number(more), true))
  )))
  const around = document.createElement('div')
  around.className = 'table-wrap'
  around.tabIndex = 0
  around.setAttribute('role', 'region')
  around.setAttribute('aria-label', words.label)
  around.append(made)
  return around
}

function differing (ours, theirs) {
  return COMPARED.filter(part => part in theirs && JSON.stringify(ours[part]) !== JSON.stringify(theirs[part]))
}

function doubted (found) {
  const { twice, roll, ballots } = doubts(found) ?? { twice: [], roll: null, ballots: 0 }
  const lines = []
  if (twice.length) lines.push(['bad', words.twice.replace('{number}', twice.length).replace('{receipt}', twice[0])])
  if (roll !== null && ballots > roll) lines.push(['bad', words.many.replace('{ballots}', ballots).replace('{roll}', roll)])
  return lines
}

// What the server says came out; of a CSV file, until "count now", only this page's own words of it.
let published = { digest: words.digest, winner: words.winner }

async function show (text) {
  let found
  try {
    found = read(text)
    found.roll ??= Number(words.roll)
    if (!found.result) found.percent = Number(words.percent)
    counted = { ...found, result: tally(found) }
  } catch {
    counted = null
    document.getElementById('table').replaceChildren()
    document.getElementById('look-up').hidden = true
    return say(['bad', words.bad])
  }
  const other = differing(counted.result, published)
  const { ballots, winner } = counted.result
  say(
    ['', words.counted.replace('{ballots}', ballots)
      .replace('{winner}', `${found.titles[winner] ?? winner} (${mark(found.options.indexOf(winner))})`)],
    ...doubted(found),
    other.length ? ['bad', words.other.replace('{parts}', other.join(', '))] : ['good', words.same]
  )
  document.getElementById('table').replaceChildren(table(counted.result, found.titles))
  document.getElementById('look-up').hidden = false
  lookUp()
}

// -- Find my receipt -----------------------------------------------------------------------------
const plain = text => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase().trim().split(/[\s-]+/).join('-')

function lookUp () {
  const asked = plain(document.getElementById('words').value)
  const said = document.getElementById('mine')
  if (!counted || !asked) return said.replaceChildren()
  const ballot = counted.ballots.find(one => plain(one.receipt) === asked || plain(one.es) === asked)
  const titled = group => group.map(option =>
    `${counted.titles[option] ?? option} (${mark(counted.options.indexOf(option))})`).join(' = ')
  said.textContent = ballot
    ? words.found.replace('{ranking}', ballot.ranking.map(titled).join(' > '))
    : asked.split('-').length === 4 ? words.missing : ''
}

// -- What one can do -----------------------------------------------------------------------------
async function fetched () {
  const answer = await fetch(words.file, { credentials: 'same-origin' })
  if (!answer.ok) throw new Error(String(answer.status))
  return answer.text()
}

document.getElementById('count').addEventListener('click', async event => {
  const button = event.currentTarget
  button.disabled = true
  try {
    const text = await fetched()
    published = JSON.parse(text).result
    await show(text)
  } catch {
    say(['bad', words.offline])
  }
  button.disabled = false
})
document.getElementById('file').addEventListener('change', async event => {
  const [file] = event.target.files
  if (file) await show(await file.text())
})
document.getElementById('words').addEventListener('input', lookUp)
page.querySelectorAll('[data-with-script]').forEach(part => { part.hidden = false })
