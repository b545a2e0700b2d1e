// Keys for the waitlist: j and k move, x ticks, a approves, r opens the reasons.
// The page is complete without this file.
(() => {
  const form = document.getElementById("decide");
  if (!form) return;
  const boxes = [...form.querySelectorAll("[data-row] input[type=checkbox]")];
  const ticked = () => boxes.some((box) => box.checked);
  const current = () => boxes.indexOf(document.activeElement);

  const move = (step) => {
    const next = Math.min(Math.max(current() + step, 0), boxes.length - 1);
    boxes[next].focus();
    boxes[next].closest("[data-row]").scrollIntoView({ block: "nearest" });
  };
  const tickCurrentIfNone = () => {
    if (!ticked() && current() >= 0) boxes[current()].checked = true;
    return ticked();
  };
  const actions = {
    j: () => move(1),
    k: () => move(-1),
    x: () => { if (current() >= 0) boxes[current()].checked = !boxes[current()].checked; },
    a: () => { if (tickCurrentIfNone()) form.requestSubmit(form.querySelector("[data-key=a]")); },
    r: () => {
      if (!tickCurrentIfNone()) return;
      const reject = document.getElementById("reject");
      reject.open = true;
      reject.querySelector("select").focus();
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
    const tick = every.some((box) => !box.checked);
    every.forEach((box) => { box.checked = tick; });
  });
})();
