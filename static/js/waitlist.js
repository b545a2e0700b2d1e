// The waitlist: says how many are ticked, ticks all, and has keys for what its buttons do:
// j and k move, x ticks, a approves, r opens the reasons.
// The page is complete without this file.
(() => {
  const form = document.getElementById("decide");
  if (!form) return;
  const boxes = [...form.querySelectorAll("[data-row] input[type=checkbox]")];
  const ticked = () => boxes.some((box) => box.checked);
  const status = document.getElementById("ticked");
  const reject = form.querySelector("[value=reject]");
  const justReject = reject.textContent;
  const current = () => boxes.indexOf(document.activeElement);

  const inWords = (words, count) =>
    (count === 1 ? words.one : words.many).replace("{count}", count);
  const count = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    status.textContent = chosen ? inWords(status.dataset, chosen) : status.dataset.none;
    reject.textContent = chosen ? inWords(reject.dataset, chosen) : justReject;
  };
  const tick = (box, checked) => { box.checked = checked && !box.disabled; };

  const move = (step) => {
    const next = Math.min(Math.max(current() + step, 0), boxes.length - 1);
    boxes[next].focus();
    boxes[next].closest("[data-row]").scrollIntoView({ block: "nearest" });
  };
  const tickCurrentIfNone = () => {
    if (!ticked() && current() >= 0) tick(boxes[current()], true);
    count();
    return ticked();
  };
  const actions = {
    j: () => move(1),
    k: () => move(-1),
    x: () => {
      if (current() >= 0) tick(boxes[current()], !boxes[current()].checked);
      count();
    },
    a: () => { if (tickCurrentIfNone()) form.requestSubmit(form.querySelector("[data-key=a]")); },
    r: () => {
      if (!tickCurrentIfNone()) return;
      const reasons = document.getElementById("reject");
      reasons.open = true;
      reasons.querySelector("select").focus();
    },
  };

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("textarea, select, input:not([type=checkbox])");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });

  const all = form.querySelector("[data-choose-all]");
  all.hidden = false;
  all.addEventListener("click", () => {
    const every = boxes.filter((box) => !box.disabled);
    const checked = every.some((box) => !box.checked);
    every.forEach((box) => tick(box, checked));
    count();
  });

  // A browser that comes back to this page restores the ticks after the script has run.
  form.addEventListener("change", count);
  window.addEventListener("pageshow", count);
  status.hidden = false;
  count();
})();
