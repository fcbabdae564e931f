// The playground's page: fields and sliders make a scenario, a worker simulates it, plots and tables show it.
"use strict";

const COLUMNS_PER_SECOND = 10; // of the plots, within these limits
const FEWEST_COLUMNS = 200;
const MOST_COLUMNS = 600;
const MOST_FLOWS = 4;
const DATAGRAM_BYTES = 1200;
const LONGEST_RUN_MS = 3000; // a longer one is given up for a newer setting

const byId = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// ---- numbers -----------------------------------------------------------------------------------

const shown = (value) => (value === Infinity ? "inf" : String(value));

// A number that is as short as its slider is coarse.
const rounded = (value) => (Number.isFinite(value) ? Number(value.toPrecision(3)) : value);

// Returns the value of a text; throws an Error whose message says what is wrong and what would be right.
function parseNumber(text, { minimum, maximum, unit = "", whole = false }) {
  const remedy = `give ${whole ? "a whole number, " : ""}${shown(minimum)} to ${shown(maximum)} ${unit}`.trim();
  const written = text.trim().toLowerCase();
  const value = written === "inf" ? Infinity : written === "" ? NaN : Number(written.replace(",", "."));
  if (Number.isNaN(value)) throw new Error(written === "" ? `The field is empty; ${remedy}.` : `“${text}” is not a number; ${remedy}.`);
  if (value < minimum || value > maximum || (whole && !Number.isInteger(value))) throw new Error(`${shown(value)} is not possible; ${remedy}.`);
  return value;
}

// From 0, the slider's minimum, to 1. The formulas are those of controllers/parameter_scale.hpp.
const SCALES = {
  linear: (range) => ({
    value: (place) => range.minimum + (range.maximum - range.minimum) * place,
    place: (value) => (value - range.minimum) / (range.maximum - range.minimum),
  }),
  logarithmic: (range) => {
    const offset = range.minimum > 0 ? 0 : range.scale_offset || 1;
    const low = Math.log(range.minimum + offset), high = Math.log(range.maximum + offset);
    return {
      value: (place) => Math.exp(low + (high - low) * place) - offset,
      place: (value) => (Math.log(value + offset) - low) / (high - low),
    };
  },
  odds: (range) => ({
    value: (place) => (place >= 1 ? Infinity : (range.scale_offset * place) / (1 - place)),
    place: (value) => (value === Infinity ? 1 : value / (value + range.scale_offset)),
  }),
};

function makeSlider(range, attributes = {}) {
  const scale = SCALES[range.scale || "linear"](range.slider ? { ...range, ...range.slider } : range);
  const slider = element("input", { type: "range", min: 0, max: 1, step: "any", ...attributes });
  return {
    slider,
    value: () => {
      const value = rounded(scale.value(Number(slider.value)));
      const inRange = Math.min(Math.max(value, range.minimum), range.maximum);
      return range.whole ? Math.round(inRange) : inRange;
    },
    show: (value) => { slider.value = Math.min(Math.max(scale.place(value), 0), 1); },
  };
}

// ---- fields ------------------------------------------------------------------------------------

const problems = new Map(); // error paragraph -> what is wrong; while there is one, nothing is simulated

function report(error, input, message) {
  error.textContent = message;
  input.setAttribute("aria-invalid", message !== "");
  if (message) problems.set(error, message);
  else problems.delete(error);
}

// A label, a slider and an input for one number. `change` is called with each new number. What is in the
// address may be wrong, so the value may be a text that is no number.
function numberField(range, value, change) {
  const error = element("p", { className: "error" });
  const input = element("input", { type: "text", inputMode: "decimal", value: shown(value), ariaLabel: range.label });
  const slider = range.noSlider ? null : makeSlider(range, { ariaLabel: range.label });
  const take = (text) => {
    try {
      const number = parseNumber(text, range);
      report(error, input, "");
      slider?.show(number);
      change(number);
    } catch (problem) {
      report(error, input, problem.message);
      changed();
    }
  };
  input.addEventListener("input", () => take(input.value));
  slider?.slider.addEventListener("input", () => { input.value = shown(slider.value()); take(input.value); });
  try {
    slider?.show(parseNumber(shown(value), range));
  } catch (problem) {
    report(error, input, problem.message);
  }
  const label = element("span", { title: range.description || "" }, range.label, range.unit ? element("small", {}, ` ${range.unit}`) : "");
  if (!slider) input.className = "short";
  return element("div", { className: range.wide ? "field wide" : "field" }, label, ...(slider ? [slider.slider] : []), input, error);
}

function choiceField(label, choices, value, change, title = "", labels = {}) {
  const error = element("p", { className: "error" });
  const select = element("select", { ariaLabel: label }, ...choices.map((choice) => element("option", { value: choice }, labels[choice] || choice)));
  select.value = value;
  if (select.value !== value) report(error, select, `“${value}” does not exist; choose one of the list.`);
  select.addEventListener("change", () => { report(error, select, ""); change(select.value); });
  return element("div", { className: "field" }, element("span", { title }, label), select, error);
}

// A list of numbers, such as a gain cycle: a slider for each, and a text for lists of another length.
function listField(range, values, change) {
  const error = element("p", { className: "error" });
  const input = element("input", { type: "text", value: values.map(shown).join(", "), ariaLabel: range.label });
  const sliders = element("div", { className: "gains" });
  const rebuild = (numbers) => {
    const made = numbers.map((number, place) => {
      const slider = makeSlider({ ...range, slider: { minimum: Math.max(range.minimum, 0.25), maximum: Math.min(range.maximum, 4) } }, { ariaLabel: `${range.label}, phase ${place + 1}` });
      slider.show(number);
      slider.slider.addEventListener("input", () => {
        numbers = numbers.with(place, slider.value());
        input.value = numbers.map(shown).join(", ");
        text.textContent = shown(numbers[place]);
        report(error, input, "");
        change(numbers);
      });
      const text = element("span", {}, shown(number));
      return element("label", {}, slider.slider, text);
    });
    sliders.replaceChildren(...made);
  };
  const parse = (text) => text.split(/[\s,;]+/).filter(Boolean).map((part) => parseNumber(part, range));
  const take = () => {
    try {
      const numbers = parse(input.value);
      if (numbers.length === 0 || numbers.length > 64) throw new Error("Give 1 to 64 numbers.");
      report(error, input, "");
      rebuild(numbers);
      change(numbers);
    } catch (problem) {
      report(error, input, problem.message);
      changed();
    }
  };
  input.addEventListener("input", take);
  try {
    rebuild(parse(input.value));
  } catch (problem) {
    report(error, input, problem.message);
  }
  const label = element("span", { title: range.description }, range.label);
  input.style.gridColumn = "2 / -1";
  return element("div", {}, element("div", { className: "field" }, label, input, error), sliders);
}

// ---- settings ----------------------------------------------------------------------------------

const RANGES = {
  rate: { label: "Rate", unit: "Mbps", minimum: 0.1, maximum: 1000, scale: "logarithmic", slider: { minimum: 1, maximum: 200 } },
  rtt: { label: "RTT", unit: "ms", minimum: 1, maximum: 2000, scale: "logarithmic", slider: { minimum: 2, maximum: 600 }, description: "Round-trip time of an empty path" },
  bdp: { label: "Queue", unit: "BDP", minimum: 0.01, maximum: 100, scale: "logarithmic", slider: { minimum: 0.1, maximum: 10 }, description: "Bandwidth-delay products: rate times RTT" },
  packets: { label: "Queue", unit: "packets", minimum: 1, maximum: 100000, whole: true, scale: "logarithmic", slider: { minimum: 5, maximum: 2000 } },
  loss: { label: "Random loss", unit: "%", minimum: 0, maximum: 50, slider: { minimum: 0, maximum: 5 }, description: "Each packet is lost with this probability, whatever the queue does" },
  duration: { label: "Duration", unit: "s", minimum: 1, maximum: 300, scale: "logarithmic", slider: { minimum: 5, maximum: 120 } },
  seed: { label: "Seed", minimum: 0, maximum: 4294967295, whole: true, noSlider: true, description: "Of all random numbers: the same seed gives the same packets" },
  start: { label: "Start", unit: "s", minimum: 0, maximum: 300, slider: { minimum: 0, maximum: 20 } },
  extra: { label: "Extra RTT", unit: "ms", minimum: 0, maximum: 1000, slider: { minimum: 0, maximum: 200 }, description: "The flow's round trip takes so much longer than the network's" },
};

const EXAMPLES = {
  "eBCC next to BBR": "rate=20&rtt=50&queue=1bdp&flow=ebcc&flow=bbr;start=2",
  "A small queue: γ and β decide": "rate=15&rtt=100&queue=0.5bdp&duration=30&flow=ebcc;gamma=10;beta=0.7",
  "BBR's gain cycle, flattened": "rate=20&rtt=60&queue=1bdp&flow=bbr;gain_cycle=1.1,0.9,1,1,1,1,1,1&flow=bbr;start=5",
  "An agent and CUBIC": "rate=30&rtt=40&queue=2bdp&duration=30&flow=window&flow=cubic;start=3",
  "The rate changes": "rate=40&rtt=50&queue=1bdp&duration=30&changes=10:10,20:60&flow=tuning",
  "Random loss": "rate=20&rtt=80&queue=1bdp&loss=1&flow=cubic",
  "Fair queueing": "rate=30&rtt=40&queue=500packets&discipline=fq-codel&flow=cubic&flow=bbr&flow=newreno&flow=vegas",
};

let about; // what the simulator has: controllers, disciplines, policies
let settings;

const controllerOf = (flow) => about.controllers.find(({ name }) => name === flow.controller);
const NAMES = JSON.parse(byId("names").textContent);
const displayName = (name) => NAMES[name] || name;
const isPolicy = (flow) => about.policies.includes(flow.controller);

const newSettings = () => ({
  rate: 20, rtt: 50, queue: 1, unit: "bdp", discipline: "drop-tail", ecn: false, loss: 0, duration: 20, seed: 0, changes: [], flows: [],
});
const newFlow = (controller) => ({ controller, start: 0, extra: 0, parameters: {} });

// The settings as an address has them: rate=20&queue=1bdp&flow=ebcc;start=2;gamma=30.
function toHash() {
  const given = new URLSearchParams();
  const standard = newSettings();
  for (const name of ["rate", "rtt"]) given.set(name, settings[name]);
  given.set("queue", `${settings.queue}${settings.unit}`);
  for (const name of ["discipline", "loss", "duration", "seed"]) if (settings[name] !== standard[name]) given.set(name, settings[name]);
  if (settings.ecn) given.set("ecn", "1");
  if (settings.changes.length) given.set("changes", settings.changes.map(({ at, rate }) => `${at}:${rate}`).join(","));
  for (const flow of settings.flows) {
    const parts = [flow.controller];
    for (const name of ["start", "extra"]) if (flow[name] !== 0) parts.push(`${name}=${flow[name]}`);
    for (const [name, value] of Object.entries(flow.parameters)) parts.push(`${name}=${[value].flat().map(shown).join(",")}`);
    given.append("flow", parts.join(";"));
  }
  // Keeps the address readable, with the characters that it may contain.
  return given.toString().replaceAll("%3A", ":").replaceAll("%2C", ",").replaceAll("%3B", ";").replace(/%3D/g, "=");
}

// A number of an address, or its text, which its field then calls wrong.
function numberOf(text, range) {
  try {
    return parseNumber(text, range);
  } catch {
    return text;
  }
}

function fromHash(hash) {
  const given = new URLSearchParams(hash);
  const read = newSettings();
  for (const name of ["rate", "rtt", "loss", "duration", "seed"]) {
    if (given.has(name)) read[name] = numberOf(given.get(name), RANGES[name]);
  }
  const [, size, unit] = /^(.*?)(bdp|packets)?$/.exec(given.get("queue") || "1bdp");
  read.unit = unit || "bdp";
  read.queue = numberOf(size, RANGES[read.unit]);
  read.discipline = given.get("discipline") || read.discipline;
  read.ecn = given.get("ecn") === "1";
  for (const change of (given.get("changes") || "").split(",").filter(Boolean)) {
    const [at, rate = ""] = change.split(":");
    read.changes.push({ at: numberOf(at, RANGES.duration), rate: numberOf(rate, RANGES.rate) });
  }
  for (const text of given.getAll("flow").slice(0, MOST_FLOWS)) {
    const [controller, ...parts] = text.split(";");
    const flow = newFlow(controller);
    const parameters = controllerOf(flow)?.parameters || [];
    for (const part of parts) {
      const [name, value = ""] = part.split("=");
      const parameter = parameters.find((known) => known.name === name);
      if (name === "start" || name === "extra") flow[name] = numberOf(value, RANGES[name]);
      else if (parameter?.is_list) flow.parameters[name] = value.split(",").map((number) => numberOf(number, parameter));
      else if (parameter) flow.parameters[name] = parameter.choices.length ? value : numberOf(value, parameter);
    }
    read.flows.push(flow);
  }
  if (read.flows.length === 0) read.flows.push(newFlow(about.controllers[0].name));
  return read;
}

// The scenario as a YAML has it (envs/scenarios/model.py); the simulator reads the same object.
function toDocument() {
  const link = { rate_mbps: settings.rate, delay_ms: settings.rtt / 2 };
  link.queue = { limit: settings.queue, unit: settings.unit, discipline: settings.discipline };
  if (settings.ecn) link.queue.ecn_marking = true;
  if (settings.loss > 0) link.loss = { kind: "bernoulli", probability: settings.loss / 100 };
  if (settings.changes.length) link.rate_schedule = settings.changes.map(({ at, rate }) => ({ at_s: at, rate_mbps: rate }));
  const flows = settings.flows.map((flow, place) => {
    const made = { name: `flow-${place + 1}` };
    if (!isPolicy(flow)) made.controller = flow.controller; // a policy has the flows that name no controller
    if (Object.keys(flow.parameters).length) made.parameters = { ...flow.parameters };
    made.start_s = flow.start;
    made.extra_delay_ms = flow.extra / 2;
    if (settings.ecn) made.ecn = true;
    return made;
  });
  return { name: "playground", duration_s: settings.duration, bottleneck: link, access: { rate_mbps: 1000, delay_ms: 0 }, flows };
}

const policyOf = () => settings.flows.find(isPolicy)?.controller || "";

// YAML 1.1, in which 1e-7 would be a text.
function yamlScalar(value) {
  if (value === Infinity) return ".inf";
  if (typeof value === "number" && /e/.test(String(value))) return String(value).replace(/^(-?\d+)e/, "$1.0e");
  return String(value);
}

function inline(value) {
  if (Array.isArray(value)) return `[${value.map(inline).join(", ")}]`;
  if (typeof value !== "object") return yamlScalar(value);
  return `{${Object.entries(value).map(([name, part]) => `${name}: ${inline(part)}`).join(", ")}}`;
}

function toYaml() {
  const lines = [];
  for (const [name, value] of Object.entries(toDocument())) {
    if (name === "bottleneck") lines.push(`${name}:`, ...Object.entries(value).map(([field, part]) => `  ${field}: ${inline(part)}`));
    else if (name === "flows") lines.push(`${name}:`, ...value.map((flow) => `  - ${inline(flow)}`));
    else lines.push(`${name}: ${inline(value)}`);
  }
  return lines.join("\n") + "\n";
}

function toCommand() {
  const policy = policyOf();
  const run = policy
    ? `quicgym evaluate --suite playground.yaml --policy ${policy} --seeds 1 --first-seed ${settings.seed}`
    : `quicgym baselines --scenario playground.yaml --seeds ${settings.seed + 1}`;
  const note = !policy && settings.seed > 0 ? `# The table has the mean over the seeds; the page shows seed ${settings.seed}, which results.json has, too.\n` : "";
  return `cat > playground.yaml <<'END'\n${toYaml()}END\n${note}${run}\n`;
}

// ---- the form ----------------------------------------------------------------------------------

function buildForm() {
  problems.clear();
  const set = (target, name) => (value) => { target[name] = value; changed(); };
  const field = (name, range = RANGES[name]) => numberField(range, settings[name], set(settings, name));
  const discipline = about.disciplines.find(({ name }) => name === settings.discipline);
  const ecn = element("input", { type: "checkbox", checked: settings.ecn, id: "ecn" });
  ecn.addEventListener("change", () => { settings.ecn = ecn.checked; changed(); });
  const canMark = discipline?.can_mark || discipline?.always_marks;
  if (!canMark) settings.ecn = false;
  byId("network").replaceChildren(
    field("rate"),
    field("rtt"),
    field("queue", RANGES[settings.unit]),
    choiceField("Queue in", ["bdp", "packets"], settings.unit, (unit) => {
      settings.unit = unit;
      settings.queue = unit === "bdp" ? 1 : 100;
      rebuild();
    }, "", { bdp: "BDP: rate × RTT" }),
    choiceField("Discipline", about.disciplines.map(({ name }) => name), settings.discipline, (name) => {
      settings.discipline = name;
      rebuild();
    }, "Which packet is next, and which are dropped or marked"),
    ...(canMark ? [element("label", { className: "field" }, element("span", {}, "ECN"), element("span", {}, ecn, " mark instead of dropping"))] : []),
    field("loss"),
    changesField(),
    field("duration"),
    field("seed"),
  );
  byId("flows").replaceChildren(...settings.flows.map(flowCard));
  byId("add-flow").hidden = settings.flows.length >= MOST_FLOWS;
}

function rebuild() {
  buildForm();
  changed();
}

function changesField() {
  const rows = settings.changes.map((change, place) => {
    const error = element("p", { className: "error" });
    const input = (name, range) => {
      const made = element("input", { type: "text", inputMode: "decimal", value: shown(change[name]), ariaLabel: `${range.label} of change ${place + 1}` });
      made.addEventListener("input", () => { check(); changed(); });
      return made;
    };
    const at = input("at", { label: "Time" });
    const rate = input("rate", RANGES.rate);
    const check = () => {
      try {
        change.at = parseNumber(at.value, { minimum: 0.001, maximum: 300, unit: "s" });
        change.rate = rate.value.trim() === "0" ? 0 : parseNumber(rate.value, RANGES.rate);
        const earlier = settings.changes[place - 1];
        if (earlier && !(change.at > earlier.at)) throw new Error(`${change.at} s is not after the change before it, ${earlier.at} s.`);
        report(error, at, "");
      } catch (problem) {
        report(error, at, problem.message);
      }
    };
    check();
    const remove = element("button", { type: "button", ariaLabel: `Remove change ${place + 1}`, onclick: () => { settings.changes.splice(place, 1); rebuild(); } }, "✕");
    return element("div", { className: "step" }, "at", at, "s:", rate, "Mbps", remove, error);
  });
  const add = element("button", {
    type: "button",
    onclick: () => {
      const last = settings.changes.at(-1);
      const at = rounded(((last?.at || 0) + settings.duration) / 2);
      settings.changes.push({ at, rate: rounded((last?.rate ?? settings.rate) > settings.rate / 2 ? settings.rate / 4 : settings.rate) });
      rebuild();
    },
  }, "Add a change of the rate");
  return element("div", { className: "steps" }, ...rows, add);
}

function flowCard(flow, place) {
  const card = element("div", { className: "card flow" });
  card.style.setProperty("--accent", `var(--flow-${place + 1})`);
  const error = element("p", { className: "error" });
  const group = (label, names) => element("optgroup", { label }, ...names.map((name) => element("option", { value: name }, displayName(name))));
  const select = element("select", { ariaLabel: `Controller of flow ${place + 1}` }, group("Controllers", about.controllers.map(({ name }) => name)), group("Learned agents", about.policies));
  select.value = flow.controller;
  if (select.value !== flow.controller) report(error, select, `“${flow.controller}” does not exist; choose a controller of the list.`);
  const other = settings.flows.slice(0, place).find((earlier) => isPolicy(earlier) && earlier.controller !== flow.controller);
  if (isPolicy(flow) && other) {
    report(error, select, `A network has one learned agent, and flow ${settings.flows.indexOf(other) + 1} has ${displayName(other.controller)}; choose ${displayName(other.controller)} or a controller.`);
  }
  select.addEventListener("change", () => { settings.flows[place] = { ...newFlow(select.value), start: flow.start, extra: flow.extra }; rebuild(); });
  const head = element("div", { className: "flow-head" }, element("b", {}, `Flow ${place + 1}`), select);
  if (settings.flows.length > 1) {
    head.append(element("button", { type: "button", ariaLabel: `Remove flow ${place + 1}`, onclick: () => { settings.flows.splice(place, 1); rebuild(); } }, "✕"));
  }
  const set = (name) => (value) => { flow[name] = value; changed(); };
  const controller = controllerOf(flow);
  const tuned = [], others = [];
  const parameters = [...(controller?.parameters || [])].sort((one, other) => one.tuned_place - other.tuned_place);
  for (const parameter of parameters) (isTuned(parameter) ? tuned : others).push(parameterField(flow, parameter));
  select.title = controller?.description || "";
  card.append(head, error, ...tuned);
  card.append(numberField(RANGES.start, flow.start, set("start")), numberField(RANGES.extra, flow.extra, set("extra")));
  if (others.length) {
    const changedOnes = parameters.some((parameter) => !isTuned(parameter) && parameter.name in flow.parameters);
    card.append(element("details", { open: changedOnes }, element("summary", {}, `${others.length} more parameters`), ...others));
  }
  return card;
}

// The parameters that agents of Tuning set are what the page is about: they have sliders.
const isTuned = ({ tuned_place }) => tuned_place < 0;

const GREEK = { alpha: "α", beta: "β", gamma: "γ" };

function parameterField(flow, parameter) {
  const standard = parameter.is_list ? parameter.default : parameter.default[0];
  const label = GREEK[parameter.name] || parameter.name.replaceAll("_", " ");
  const range = { ...parameter, label, wide: !isTuned(parameter), noSlider: !isTuned(parameter) };
  const take = (value) => {
    if (JSON.stringify([value].flat().map(shown)) === JSON.stringify([standard].flat().map(shown))) delete flow.parameters[parameter.name];
    else flow.parameters[parameter.name] = value;
    changed();
  };
  const value = flow.parameters[parameter.name] ?? standard;
  if (parameter.choices.length) {
    const name = typeof value === "number" ? parameter.choices[value] : value;
    return choiceField(label, parameter.choices, name, (choice) => {
      if (choice === parameter.choices[standard]) delete flow.parameters[parameter.name];
      else flow.parameters[parameter.name] = choice;
      changed();
    }, parameter.description);
  }
  return parameter.is_list ? listField(range, value, take) : numberField(range, value, take);
}

// ---- simulating --------------------------------------------------------------------------------

const workerUrl = URL.createObjectURL(new Blob([byId("simulator").textContent, "\n", byId("worker").textContent], { type: "text/javascript" }));
let worker, running, waiting, number = 0;
let settled = []; // who waits for the newest result
let last; // the newest result with the document that it is of

function startWorker() {
  worker?.terminate();
  running = undefined;
  worker = new Worker(workerUrl);
  worker.onmessage = ({ data }) => (data.controllers ? begin(data) : finished(data));
  worker.onerror = (event) => { byId("status").textContent = `The simulator cannot run in this browser: ${event.message}`; };
  worker.postMessage({ policies: JSON.parse(byId("policies").textContent) });
}

// The newest setting is simulated as soon as the one before is done.
function changed() {
  crossChecks();
  const hasProblems = problems.size > 0;
  byId("results").classList.toggle("stale", hasProblems);
  const shownInstead = last ? "The results are those before the change" : "Nothing is simulated yet";
  byId("problem").textContent = hasProblems ? `${shownInstead}: mend the field that is marked.` : "";
  if (hasProblems) return settle();
  history.replaceState(null, "", `#${toHash()}`);
  number += 1;
  const columns = Math.min(Math.max(settings.duration * COLUMNS_PER_SECOND, FEWEST_COLUMNS), MOST_COLUMNS);
  waiting = {
    number, document: toDocument(), policy: policyOf(), seed: settings.seed,
    traceIntervalMs: Math.round((settings.duration * 1000) / columns),
  };
  if (running && performance.now() - running.begin > LONGEST_RUN_MS) startWorker();
  else if (!running) next();
}

// Rules that concern several fields together.
function crossChecks() {
  for (const [place, card] of [...byId("flows").children].entries()) {
    const flow = settings.flows[place];
    const error = card.querySelector(":scope > .error");
    const late = typeof flow.start === "number" && flow.start >= settings.duration;
    if (late) report(error, card.querySelector("select"), `The flow starts at ${flow.start} s, and the run ends at ${settings.duration} s; start it earlier.`);
    else if (error.textContent.startsWith("The flow starts")) report(error, card.querySelector("select"), "");
  }
}

function next() {
  if (!waiting) return settle();
  running = { ...waiting, begin: performance.now() };
  waiting = undefined;
  worker.postMessage(running);
}

function finished({ number: of, result, milliseconds }) {
  if (!running || of !== running.number) return;
  const { document: scenario, policy } = running;
  running = undefined;
  if (result.error) {
    byId("results").classList.add("stale");
    byId("problem").textContent = `This cannot be simulated: ${result.error}`;
  } else {
    byId("problem").textContent = "";
    byId("results").classList.remove("stale", "empty");
    showResult(scenario, result);
    const measured = result.begin_s > 0 ? ` The four numbers are measured from ${rounded(result.begin_s)} s on, when the first ${policy ? "agent's " : ""}flow starts.` : "";
    byId("status").textContent = `${scenario.duration_s} simulated seconds took ${Math.round(milliseconds)} ms.${measured}`;
  }
  last = { scenario, policy, result };
  next();
}

function settle() {
  if (running || waiting) return;
  for (const resolve of settled.splice(0)) resolve(last);
}

function begin(data) {
  const isFirst = !about;
  about = data;
  byId("status").textContent = "";
  if (isFirst) load();
  else next();
}

function load() {
  settings = fromHash(location.hash.slice(1) || Object.values(EXAMPLES)[0]);
  rebuild();
}

// ---- results -----------------------------------------------------------------------------------

// The mean over time of a column, as quicgym's results have it.
function meanOf(result, column) {
  const width = result.columns.length, place = result.columns.indexOf(column), time = result.columns.indexOf("time_s");
  let sum = 0, seconds = 0, before = result.begin_s;
  for (let row = 0; row < result.rows.length; row += width) {
    const length = result.rows[row + time] - before;
    before = result.rows[row + time];
    sum += length * result.rows[row + place];
    seconds += length;
  }
  return sum / seconds;
}

const TILES = [
  ["reward", "Reward", "throughput share − 5 · loss rate − (1 − Jain's index): what agents earn", (value) => value.toFixed(3)],
  ["throughput_share", "Throughput share", "what reached the receivers / what the bottleneck could have carried", (value) => value.toFixed(3)],
  ["loss_rate", "Loss rate", "packets that the network dropped / dropped or received", (value) => `${(100 * value).toFixed(2)} %`],
  ["jain", "Jain's index", "1: all flows get the same, in intervals of 100 ms", (value) => value.toFixed(3)],
];

function showResult(scenario, result) {
  byId("tiles").replaceChildren(...TILES.map(([column, label, title, format]) =>
    element("div", { className: "tile", title }, element("b", {}, format(meanOf(result, column))), element("span", {}, label))));
  const head = ["Flow", "Delivered (Mbps)", "Mean RTT (ms)", "95% RTT (ms)", "Dropped (%)", "Window (packets)"];
  const rows = result.flows.map(({ totals }, place) => {
    const seconds = scenario.duration_s - totals.start * 1e-9;
    const cells = [
      (totals.received_bytes * 8e-6) / seconds,
      (totals.rtt_sum_seconds * 1e3) / totals.rtt_samples,
      totals.rtt_p95_seconds * 1e3,
      (100 * totals.dropped_packets) / totals.sent_packets,
      totals.window_packet_seconds / totals.window_seconds,
    ];
    const dot = element("span", { className: "dot" });
    dot.style.setProperty("--accent", `var(--flow-${place + 1})`);
    const name = scenario.flows[place].controller || policyOf();
    return element("tr", {}, element("td", {}, dot, `${place + 1} ${displayName(name)}`),
      ...cells.map((value, column) => element("td", {}, Number.isFinite(value) ? value.toFixed([2, 1, 1, 2, 1][column]) : "–")));
  });
  byId("table").replaceChildren(element("tr", {}, ...head.map((text) => element("th", {}, text))), ...rows);
  drawPlots(scenario, result);
}

const PLOTS = [
  { title: "Delivered rate", unit: "Mbps", extra: "rate of the bottleneck, dashed" },
  { title: "Round-trip time", unit: "ms", extra: "without a queue, dashed" },
  { title: "Window", unit: "packets" },
  { title: "Queue before the bottleneck", unit: "packets" },
];
let plots = [];

// A flow's trace has its first row when the flow starts, and the queue's when the run does.
function seriesOf(scenario, result) {
  const times = Array.from(result.queue.time, (time) => time * 1e-9);
  const interval = times[1] - times[0];
  const each = (value) => result.flows.map(({ trace }) => {
    const values = new Array(times.length).fill(null);
    for (let row = 0; row < trace.time.length; ++row) {
      const place = Math.round((trace.time[row] * 1e-9 - times[0]) / interval);
      if (place < times.length) values[place] = value(trace, row);
    }
    return values;
  });
  const rate = (trace, row) => (row === 0 ? null : ((trace.received_bytes[row] - trace.received_bytes[row - 1]) * 8e-6) / interval);
  const link = scenario.bottleneck;
  const capacity = times.map((time) => (link.rate_schedule || []).findLast(({ at_s }) => at_s <= time)?.rate_mbps ?? link.rate_mbps);
  const baseRtt = 2 * (link.delay_ms + 2 * scenario.access.delay_ms);
  return [
    [times, ...each(rate), capacity],
    [times, ...each((trace, row) => (trace.rtt[row] > 0 ? trace.rtt[row] * 1e-6 : null)), times.map(() => baseRtt)],
    [times, ...each((trace, row) => trace.window_bytes[row] / DATAGRAM_BYTES)],
    [times, Array.from(result.queue.packets)],
  ];
}

function drawPlots(scenario, result) {
  const data = seriesOf(scenario, result);
  const count = result.flows.length;
  if (plots.length && plots[0].flows === count) {
    plots.forEach(({ plot }, place) => plot.setData(data[place]));
    return;
  }
  plots.forEach(({ plot }) => plot.destroy());
  const css = getComputedStyle(document.documentElement);
  const colour = (name) => css.getPropertyValue(`--${name}`).trim();
  plots = PLOTS.map(({ title, unit, extra }, place) => {
    const box = byId(`plot-${place}`);
    box.replaceChildren(element("h2", {}, title, element("small", {}, ` (${unit}${extra ? `; ${extra}` : ""})`)));
    const lines = place === 3 ? [{ stroke: colour("text"), width: 1.2 }] : Array.from({ length: count }, (_, flow) => ({ stroke: colour(`flow-${flow + 1}`), width: 1.5 }));
    if (extra) lines.push({ stroke: colour("capacity"), width: 1.2, dash: [6, 4], paths: uPlot.paths.stepped({ align: 1 }) });
    const axis = { stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, font: "12px system-ui" };
    const options = {
      ...sizeOf(box),
      cursor: { sync: { key: "time" }, y: false },
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.06 : 1] } },
      axes: [{ ...axis, size: 30, values: (_, ticks) => ticks.map((tick) => `${tick} s`) }, { ...axis, size: 46 }],
      series: [{}, ...lines.map((line) => ({ ...line, points: { show: false } }))],
    };
    return { plot: new uPlot(options, data[place], box), box, flows: count };
  });
}

// All plots fit a screen, so that the settings can be scrolled beside them.
function sizeOf(box) {
  const style = getComputedStyle(box);
  const width = box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  const table = 60 + 30 * settings.flows.length;
  const height = window.innerWidth > 900 ? Math.min(Math.max((window.innerHeight - table - 260) / 4, 110), 230) : 116;
  return { width: Math.max(200, width), height };
}

const resized = () => plots.forEach(({ plot, box }) => plot.setSize(sizeOf(box)));
new ResizeObserver(resized).observe(byId("plot-1"));
window.addEventListener("resize", resized);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  plots.forEach((entry) => { entry.flows = 0; });
  if (last && !last.result.error) drawPlots(last.scenario, last.result);
});

// ---- buttons -----------------------------------------------------------------------------------

async function copy(title, text) {
  byId("dialog-title").textContent = title;
  byId("dialog-text").value = text;
  byId("dialog").showModal();
  byId("dialog-text").select();
  try {
    await navigator.clipboard.writeText(text);
    byId("dialog-note").textContent = "It is in the clipboard.";
  } catch {
    byId("dialog-note").textContent = "Copy the text: this browser does not let the page do it.";
  }
}

byId("copy-yaml").onclick = () => copy("playground.yaml", toYaml());
byId("copy-command").onclick = () => copy("Command", toCommand());
byId("copy-link").onclick = () => copy("Link", location.href);
byId("add-flow").onclick = () => {
  settings.flows.push(newFlow(settings.flows.at(-1).controller));
  rebuild();
};
byId("examples").append(...Object.entries(EXAMPLES).map(([label, hash]) => element("option", { value: hash }, label)));
byId("examples").onchange = ({ target }) => {
  if (target.value) location.hash = target.value;
  target.value = "";
};
window.addEventListener("hashchange", load);

// For tests: the newest result when everything is simulated, and what the page would copy.
const settledResult = () => new Promise((resolve) => { settled.push(resolve); if (about) settle(); });
window.playground = {
  settle: settledResult,
  open: (hash) => {
    history.replaceState(null, "", `#${hash}`);
    load();
    return settledResult();
  },
  meanOf,
  about: () => about,
  toYaml,
  toCommand,
  problems: () => [...problems.values()],
};

startWorker();
