"use strict";

const $ = (id) => document.getElementById(id);
const ALIVE_EVERY = 30000; // ms; the server waits four times as long
const LOOK_EVERY = 5000;
const TYPING = 1000; // digits this close together are one number

const session = Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
let audit = null;
let by = "";
let task = null; // the draw to label
let fixing = null; // the last label, while it is corrected
let last = null; // {task, score, seen}
let skipped = [];
let busy = false;
let typed = { text: "", at: 0 };

async function ask(call, what = {}) {
  let response;
  try {
    response = await fetch(`api/${call}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(what),
    });
  } catch {
    throw new Error("evalbudget audit serve does not answer; start it again and open the address it prints.");
  }
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function say(text, bad = false) {
  $("status").textContent = text;
  $("status").classList.toggle("bad", bad);
}

const shown = (score, digits = 4) => String(Number(score.toFixed(digits)));

// The score

function buildScale() {
  const { levels, low, high, text } = audit.scale;
  $("legend").textContent = `Your score, ${text}`;
  const box = $("levels");
  if (levels && levels.length <= 21) {
    levels.forEach((level) => {
      const label = document.createElement("label");
      const input = document.createElement("input");
      const face = document.createElement("span");
      label.className = "level";
      Object.assign(input, { type: "radio", name: "score", value: String(level) });
      face.textContent = shown(level);
      label.append(input, face);
      box.append(label);
    });
    return;
  }
  const field = document.createElement("input");
  const slider = document.createElement("input");
  Object.assign(field, { type: "number", id: "number", min: low, max: high, step: audit.scale.step ?? "any" });
  Object.assign(slider, { type: "range", id: "slider", min: low, max: high, step: step() });
  field.setAttribute("aria-labelledby", "legend");
  slider.setAttribute("aria-label", "Your score, by sliding");
  slider.tabIndex = -1;
  field.addEventListener("input", () => { if (field.value !== "") slider.value = field.value; });
  slider.addEventListener("input", () => { field.value = slider.value; });
  box.append(field, slider);
}

const step = () => audit.scale.step ?? (audit.scale.high - audit.scale.low) / 100;
const radios = () => Array.from(document.querySelectorAll("#levels input[type=radio]"));

function score() {
  if (!$("number")) {
    const chosen = radios().find((input) => input.checked);
    return chosen ? Number(chosen.value) : null;
  }
  const field = $("number");
  return field.value === "" || !field.validity.valid ? null : Number(field.value);
}

function setScore(value) {
  if (!$("number")) {
    radios().forEach((input) => { input.checked = value !== null && Number(input.value) === value; });
    return;
  }
  $("number").value = value === null ? "" : String(Number(value.toFixed(6)));
  $("slider").value = value === null ? (audit.scale.low + audit.scale.high) / 2 : value;
}

function move(direction, far) {
  const { low, high } = audit.scale;
  const now = score();
  const middle = low + Math.round((high - low) / 2 / step()) * step();
  const to = now === null ? middle : now + direction * step() * (far ? 10 : 1);
  setScore(snapped(Math.min(high, Math.max(low, to))));
}

function snapped(value) {
  const { levels } = audit.scale;
  if (!levels) return value;
  return levels.reduce((best, level) => (Math.abs(level - value) < Math.abs(best - value) ? level : best));
}

function type(digit) {
  if ($("number")) { // the digit lands in the field that gets the focus
    if (document.activeElement !== $("number")) {
      $("number").value = "";
      $("number").focus();
    }
    return false;
  }
  const values = radios().map((input) => Number(input.value));
  const now = Date.now();
  const longer = now - typed.at < TYPING ? typed.text + digit : digit;
  const ten = digit === "0" && !values.includes(0) ? [10] : [];
  const found = [Number(longer), Number(digit), ...ten].find((value) => values.includes(value));
  typed = { text: Number(longer) === found ? longer : digit, at: now };
  if (found === undefined) say(`${digit} is not on the scale: ${audit.scale.text}.`, true);
  else { setScore(found); say(""); }
  return true;
}

// Items

async function next() {
  const found = await ask("next", { session, by, skip: skipped });
  const changed = !task || !found.task || task.draw !== found.task.draw;
  task = found.task;
  if (changed) show();
}

function show() {
  const what = fixing ? fixing.task : task;
  $("item").hidden = $("form").hidden = !what;
  $("idle").hidden = Boolean(what);
  $("correcting").hidden = !fixing;
  $("skip").hidden = Boolean(fixing);
  if (!what) return;
  const segment = audit.segments > 1 ? ` · ${what.segment}` : "";
  $("title").textContent = what.item + segment;
  $("prompt").textContent = what.prompt;
  $("response").textContent = what.response;
  setScore(fixing ? fixing.score : null);
  typed = { text: "", at: 0 };
  if (fixing) $("correcting").textContent = `You gave ${shown(fixing.score)}. Choose another score, or Esc to leave it.`;
  window.scrollTo(0, 0);
  $("title").focus({ preventScroll: true });
}

async function save() {
  if (busy) return;
  const value = score();
  if (value === null) {
    const wrong = $("number") && ($("number").value || $("number").validity.badInput);
    say(`${wrong ? "That is not on the scale" : "Choose a score first"}: ${audit.scale.text}.`, true);
    return;
  }
  busy = $("save").disabled = true;
  try {
    if (fixing) await correct(value);
    else if (task) await label(value);
  } catch (error) {
    say(`Not saved: ${error.message}`, true);
  } finally {
    busy = $("save").disabled = false;
  }
}

async function label(value) {
  const answer = await ask("label", { draw: task.draw, score: value, by, session });
  const others = answer.kind === "conflicts" || answer.kind === "agrees";
  last = { task, score: answer.score, seen: false, mine: !others };
  say(
    others
      ? `${answer.counts.by} had labelled this with ${shown(answer.counts.score)}, which counts; yours is kept beside it.`
      : `Saved ${shown(answer.score)} for ${task.item}.`,
    answer.kind === "conflicts",
  );
  showLast();
  const { item } = task;
  task = null;
  try {
    await next();
  } catch (error) { // the label is saved all the same
    show();
    $("idle-text").textContent = error.message;
    say(`Saved ${shown(answer.score)} for ${item}. The next one cannot be had: ${error.message}`, true);
    return;
  }
  if (task && task.item === item && !others) say(`Saved ${shown(answer.score)}. The same item again, answered by another system.`);
  refresh();
}

async function correct(value) {
  await ask("correct", { draw: fixing.task.draw, score: value, by });
  say(`Corrected ${shown(fixing.score)} to ${shown(value)}.`);
  last.score = value;
  fixing = null;
  showLast();
  show();
  refresh();
}

function showLast() {
  $("last").hidden = !last;
  if (!last) return;
  $("last-label").textContent = `You gave ${shown(last.score)} to ${last.task.item}.`;
  $("correct").disabled = last.seen || !last.mine;
  $("opinion").disabled = last.seen;
  if (!last.seen) $("judge").textContent = "";
}

async function opinion() {
  if (!last || last.seen || fixing) return;
  try {
    const found = await ask("opinion", { draw: last.task.draw, by });
    last.seen = true;
    const reason = found.reason ? `: ${found.reason}` : ", without a reason.";
    $("judge").textContent = found.score === null ? "The judge gave no score." : `The judge gave ${shown(found.score, 2)}${reason}`;
    showLast();
  } catch (error) {
    say(error.message, true);
  }
}

function startCorrecting() {
  if (!last || last.seen || !last.mine || fixing) return;
  fixing = last;
  show();
}

function stopCorrecting() {
  if (!fixing) return;
  fixing = null;
  show();
  say("");
}

async function skip() {
  if (!task || fixing || busy) return;
  busy = true;
  try {
    skipped = skipped.filter((draw) => draw !== task.draw).concat(task.draw);
    const put = task;
    task = null;
    await next();
    say(task && task.draw === put.draw ? "This is the only one left." : `${put.item} comes back at the end.`);
    if (task && task.draw === put.draw) show();
  } catch (error) {
    say(error.message, true);
  } finally {
    busy = false;
  }
}

// The verdict

async function refresh() {
  const found = await ask("state");
  const { progress, standing } = found;
  $("bar").max = Math.max(progress.wanted, 1);
  $("bar").value = progress.labelled;
  const batch = progress.batch > 0 ? ` · batch ${progress.batch + 1}: ${progress.batch_labelled} of ${progress.batch_wanted}` : "";
  $("count").textContent = `${progress.labelled} of ${progress.wanted} labels${batch}`;
  $("conflicts").hidden = !progress.conflicts;
  const several = progress.conflicts !== 1;
  $("conflicts").textContent = `${progress.conflicts} item${several ? "s have" : " has"} contradictory labels; the first one counts.`;
  if (!standing) {
    $("headline").textContent = "No verdict can be given";
    $("reason").textContent = found.problem;
    return;
  }
  $("headline").replaceChildren(Object.assign(document.createElement("strong"), { textContent: standing.headline }));
  $("reason").textContent = standing.reason;
  $("interval").textContent = standing.interval;
  $("models").replaceChildren(...standing.models.map(bar));
  const elsewhere = progress.outstanding > 0;
  $("idle-title").textContent = elsewhere ? "Others have the rest" : standing.headline;
  $("idle-text").textContent = elsewhere
    ? `${progress.outstanding} wanted, all of them open on other pages. What they do not finish comes here.`
    : `${standing.next_step[0].toUpperCase()}${standing.next_step.slice(1)}.`;
}

function bar(model) {
  const { low, high } = audit.scale;
  const at = (value) => `${(100 * (Math.min(high, Math.max(low, value)) - low)) / (high - low)}%`;
  const make = (kind, text = "") => Object.assign(document.createElement("div"), { className: kind, textContent: text });
  const box = make(model.racing ? "model" : "model out");
  const name = make("name");
  const known = model.low !== null && model.value !== null;
  const numbers = known ? `${model.value.toFixed(2)}  [${model.low.toFixed(2)}, ${model.high.toFixed(2)}]` : "not known yet";
  for (const text of [model.racing ? model.model : `${model.model} (out)`, numbers]) {
    name.append(Object.assign(document.createElement("span"), { textContent: text, title: text }));
  }
  box.append(name);
  if (!known) return box;
  const track = make("track");
  track.setAttribute("aria-hidden", "true"); // the numbers above say it all
  const range = make("range");
  range.style.left = at(model.low);
  range.style.right = `calc(100% - ${at(model.high)})`;
  const point = make("point");
  point.style.left = at(model.value);
  track.append(range, point);
  const ends = make("ends");
  ends.append(make("", shown(low)), make("", shown(high)));
  ends.setAttribute("aria-hidden", "true");
  box.append(track, ends);
  return box;
}

// Keys

const KEYS = [
  ["digits", "choose a score (0 for 10 where there is no 0)"],
  ["← →", "one step down or up; with Shift ten"],
  ["Enter", "save and go on"],
  ["s", "later: put this item off"],
  ["j", "what the judge says of the last one"],
  ["u", "correct the last label"],
  ["Esc", "leave the correction"],
  ["?", "these keys"],
];

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const key = event.key;
  const inField = event.target.id === "number";
  if (key === "?") $("keys").showModal();
  else if (key === "Escape") stopCorrecting();
  else if (key === "Enter") {
    if (event.target.tagName === "BUTTON") return; // it presses the button
    save();
  } else if ($("form").hidden) {
    if (key === "j") opinion();
    else if (key === "u") startCorrecting();
    else return;
  } else if (/^[0-9]$/.test(key)) {
    if (inField || !type(key)) return;
  } else if (/^[.,-]$/.test(key) && $("number") && !inField) {
    type(key);
    return;
  } else if (key === "ArrowLeft" || key === "ArrowRight") {
    if (inField) return;
    move(key === "ArrowRight" ? 1 : -1, event.shiftKey);
  } else if (key === "s") skip();
  else if (key === "j") opinion();
  else if (key === "u") startCorrecting();
  else return;
  event.preventDefault();
}

// Begin

async function askName() {
  $("name-field").value = by;
  $("name").showModal();
  await new Promise((done) => $("name").addEventListener("close", done, { once: true }));
  const name = $("name-field").value.trim();
  if (!name && !by) return askName();
  if (name) by = name;
  try { localStorage.setItem("labeller", by); } catch { /* a browser that keeps nothing */ }
  $("who").textContent = `as ${by}`;
}

async function look() { // is there something new to label, is the draw still ours?
  try {
    if (busy) return;
    if (task) {
      const found = await ask("alive", { draw: task.draw, session });
      if (found.labelled || !found.held) {
        const old = task.draw;
        task = null;
        await next();
        if (found.labelled) say("Somebody else has labelled that one; here is the next.");
        else if (task && task.draw !== old) say("That one was open for too long and went to somebody else.", true);
      }
    } else await next();
    await refresh();
  } catch (error) {
    say(error.message, true);
    $("idle-text").textContent = error.message;
  }
}

async function begin() {
  KEYS.forEach(([key, what]) => {
    const term = document.createElement("dt");
    term.append(Object.assign(document.createElement("kbd"), { textContent: key }));
    $("key-list").append(term, Object.assign(document.createElement("dd"), { textContent: what }));
  });
  $("help").addEventListener("click", () => $("keys").showModal());
  $("who").addEventListener("click", askName);
  $("opinion").addEventListener("click", opinion);
  $("correct").addEventListener("click", startCorrecting);
  $("skip").addEventListener("click", skip);
  $("form").addEventListener("submit", (event) => { event.preventDefault(); save(); });
  document.addEventListener("keydown", onKey);
  window.addEventListener("pagehide", () => {
    navigator.sendBeacon("api/release", JSON.stringify({ session }));
  });
  try {
    audit = await ask("audit");
    document.title = `${audit.store} · evalbudget`;
    buildScale();
    try { by = localStorage.getItem("labeller") || ""; } catch { /* a browser that keeps nothing */ }
    by = audit.by || by;
    if (by) $("who").textContent = `as ${by}`;
    else await askName();
    await next();
    if (!task) show();
    await refresh();
  } catch (error) {
    $("count").textContent = error.message;
  }
  setInterval(() => { if (task) look(); }, ALIVE_EVERY);
  setInterval(() => { if (!task) look(); }, LOOK_EVERY);
}

begin();
