// The ballot's ranking: rows in the order of their numbers, moved by dragging, by the arrow keys on
// a handle, or by two buttons. The numbers are what is sent; without this file they are all there is.
(function () {
  const list = document.getElementById('ranking')
  if (!list) return
  const rows = [...list.children] // in the order of the ballot
  const said = document.getElementById('ranking-said')
  const divider = document.createElement('li')
  divider.className = 'divider'
  divider.textContent = list.dataset.divider

  const choice = row => row.querySelector('select')
  const rank = row => Number(choice(row).value) // 0: none

  // -- Groups of rows, best first ------------------------------------------------------------------
  function groups () {
    const found = new Map()
    rows.forEach(row => {
      if (rank(row)) found.set(rank(row), [...(found.get(rank(row)) ?? []), row])
    })
    return [...found.keys()].sort((a, b) => a - b).map(number => found.get(number))
  }

  function write (ordered) {
    rows.forEach(row => { choice(row).value = '' })
    ordered.filter(group => group.length).forEach((group, place) => {
      group.forEach(row => { choice(row).value = String(place + 1) })
    })
  }

  function draw () {
    const ordered = groups().flat()
    const rest = rows.filter(row => !rank(row))
    list.append(...ordered, divider, ...rest)
    divider.hidden = !rest.length
    const tied = row => rank(row) && rows.some(other => other !== row && rank(other) === rank(row))
    rows.forEach(row => {
      row.classList.toggle('ranked', rank(row) > 0)
      row.classList.toggle('tied', Boolean(tied(row)))
    })
  }

  function announce (row) {
    const count = groups().length
    const tied = row.classList.contains('tied')
    const words = !rank(row) ? list.dataset.unranked : tied ? list.dataset.tied : list.dataset.place
    said.textContent = words.replace('{title}', row.dataset.title)
      .replace('{place}', rank(row)).replace('{count}', count)
  }

  // -- One step ------------------------------------------------------------------------------------
  function step (row, by) {
    const ordered = groups()
    const at = ordered.findIndex(group => group.includes(row))
    if (at < 0) {
      if (by > 0) return
      ordered.push([row]) // from below: the last place
    } else if (ordered[at].length > 1) {
      ordered[at] = ordered[at].filter(other => other !== row)
      ordered.splice(by < 0 ? at : at + 1, 0, [row])
    } else {
      ordered.splice(at, 1)
      if (!(by > 0 && at === ordered.length)) ordered.splice(Math.max(0, at + by), 0, [row])
    }
    write(ordered)
  }

  function move (row, by, focused) {
    step(row, by)
    draw()
    announce(row)
    focused.focus()
  }

  // -- Dragging ------------------------------------------------------------------------------------
  function drop (row, before) {
    // Where it lies now: between two that are equal it is equal to them.
    const shown = [...list.children].filter(one => one !== row)
    const place = [...list.children].indexOf(row)
    const above = shown[place - 1]
    const below = shown[place]
    if (shown.indexOf(divider) < place && !divider.hidden) return write(before.map(group => without(group, row)))
    const ordered = before.map(group => without(group, row)).filter(group => group.length)
    const inside = ordered.find(group => group.includes(above) && group.includes(below))
    if (inside) inside.push(row)
    else {
      const next = ordered.findIndex(group => group.includes(below))
      ordered.splice(next < 0 ? ordered.length : next, 0, [row])
    }
    write(ordered)
  }

  const without = (group, row) => group.filter(other => other !== row)

  function under (y, row) {
    return [...list.children].filter(one => one !== row && !one.hidden).find(one => {
      const box = one.getBoundingClientRect()
      return y < box.top + box.height / 2
    })
  }

  function drag (row, handle, start) {
    // The document listens: a row that is moved within the page loses its capture of the pointer.
    const before = groups()
    let moved = false
    const follow = event => {
      if (event.pointerId !== start.pointerId) return
      if (!moved && Math.abs(event.clientY - start.clientY) < 5) return
      moved = true
      divider.hidden = false // so that there is a place below it
      row.classList.add('dragged')
      list.insertBefore(row, under(event.clientY, row) ?? null)
    }
    const end = event => {
      if (event.pointerId !== start.pointerId) return
      document.removeEventListener('pointermove', follow)
      document.removeEventListener('pointerup', end)
      document.removeEventListener('pointercancel', end)
      row.classList.remove('dragged')
      if (moved && event.type === 'pointerup') drop(row, before)
      draw()
      if (moved) announce(row)
      handle.focus()
    }
    document.addEventListener('pointermove', follow)
    document.addEventListener('pointerup', end)
    document.addEventListener('pointercancel', end)
  }

  rows.forEach(row => {
    const handle = row.querySelector('.handle')
    const arrows = row.querySelector('.arrows')
    handle.hidden = arrows.hidden = false
    handle.addEventListener('pointerdown', event => {
      if (event.button !== 0) return
      event.preventDefault() // no selection of text on the way
      drag(row, handle, event)
    })
    handle.addEventListener('keydown', event => {
      const by = { ArrowUp: -1, ArrowDown: 1 }[event.key]
      if (!by) return
      event.preventDefault()
      move(row, by, handle)
    })
    arrows.querySelectorAll('button').forEach(button => {
      button.addEventListener('click', () => move(row, Number(button.dataset.move), button))
    })
    choice(row).addEventListener('change', () => {
      draw()
      announce(row)
      choice(row).focus()
    })
  })
  document.querySelectorAll('[data-with-script]').forEach(part => { part.hidden = false })
  window.addEventListener('pageshow', draw) // a browser that comes back restores the numbers late
  draw()
})()
