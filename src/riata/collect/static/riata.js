/* The device's side of a riata task: from answers to the eight bytes that leave, and nothing else.
 *
 * The same as riata.local.Client in Python, word for word of the randomness. No dependencies:
 * WebCrypto gives SHA-256, AES-256-CTR and random words.
 *
 *     const task = await open(bytesOfTheTaskFile);
 *     const report = await draw(task, {age: 44, smokes: "no"});   // Uint8Array of 8 bytes
 */

const WORD = 1n << 64n;
const SKETCHED = 2048, WIDTH = 512;
const SIGNS = 1n << 40n, PLACES = 1n << 41n, FREQUENCIES = 1n << 42n;
const YES = new Map(Object.entries({ yes: 1, no: 0, true: 1, false: 0, 1: 1, 0: 0 }));
const BLANKS = /^[ \t\n\r\f\v]+|[ \t\n\r\f\v]+$/g;
const DECIMAL = /^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?$/i;

/* ---- The task file: the rules of riata.local.Task, and what an answer to each question costs. ---- */

const MOST_BYTES = 2 ** 22, MOST_ENCODED = 2 ** 22, MOST_COLUMNS = 4096, MOST_FREQUENCIES = 2 ** 24;
const DEGREES = { mean: 1, gram: 2, cross: 1, joint: 2 };
/* The target's part of a length. */
const TARGET_SHARE = 0.4;
/* riata.local.kinds: the kinds of a target, and what else a kind of task may have. */
const ANY = ["number", "yes-no"];
const KINDS = {
  mean: { wide: true }, "sparse-mean": { wide: true },
  linear: { targets: ANY, intercept: true }, lasso: { targets: ANY, intercept: true },
  "sparse-linear": { targets: ANY, intercept: true, wide: true },
  logistic: { targets: ["yes-no"], intercept: true },
  poisson: { targets: ["number"], intercept: true, counts: true },
  kernel: { targets: ANY, kernel: true, wide: true },
};
const WHOLE = ["format", "cap", "size", "degree", "pairs"];
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][0-9.eE+-]*/g;

const refuse = (where) => { throw new Error(`The task cannot be opened: ${where} is missing, unknown or wrong.`); };
const demand = (good, where) => good || refuse(where);

/* A rule takes what the file says and the field's name, and gives the value or refuses. Texts begin
 * with "s" and numbers with "n", as `parse` leaves them. */
const text = (least = 0) => (raw, where) => {
  demand(typeof raw === "string" && raw[0] === "s" && raw.length > least && !/\p{Cs}/u.test(raw), where);
  return raw.slice(1);
};
const oneOf = (known) => (raw, where) => demand(known.includes(text()(raw, where)), where) && raw.slice(1);
const number = (least, most, above = -Infinity) => (raw, where) => {
  const value = typeof raw === "string" && raw[0] === "n" ? Number(raw.slice(1)) + 0 : NaN;
  return demand(least <= value && value <= most && value > above, where) && value;
};
const whole = (least, most) => (raw, where) =>
  demand(/^n[1-9][0-9]*$/.test(raw), where) && number(least, most)(raw, where);
const list = (rule) => (raw, where) =>
  demand(Array.isArray(raw) && raw.length, where) && raw.map((one, i) => rule(one, `${where}[${i}]`));
const table = (rules) => (raw, where) => {
  demand(raw && typeof raw === "object" && !Array.isArray(raw), where);
  const names = Object.keys(rules);
  Object.keys(raw).forEach((name) => demand(names.includes(name.slice(1)), `${where}.${name.slice(1)}`));
  return Object.fromEntries(names.map((name) => [name, rules[name](raw[`s${name}`], `${where}.${name}`)]));
};
const different = (values) => new Set(values).size === values.length;
const any = number(-1e60, 1e60), scale = number(1e-60, 1e60);
const FEATURES = {
  number: { bounds: list(any), center: any },
  "yes-no": { center: any },
  choice: { choices: list(text()) },
  vector: { bounds: list(any), center: any, size: whole(1, MOST_ENCODED) },
};
const COIN = /^(?!0{16})[0-9a-f]{16}$/;

function feature(raw, where) {
  const kind = oneOf(Object.keys(FEATURES))(raw?.skind, `${where}.kind`);
  const question = (asked, at) => asked === undefined ? asked : text(1)(asked, at);
  const made = table({ name: text(1), kind: text(), weight: scale, question, ...FEATURES[kind] })(raw, where);
  const [low, high, ...more] = made.bounds || [0, 1];
  demand(high - low >= 2e-60 && !more.length, `${where}.bounds`);
  if (kind === "choice") demand(different(made.choices), `${where}.choices`);
  else demand(low <= made.center && made.center <= high, `${where}.center`);
  return made;
}

const target = (kinds, counts) => (raw, where) => {
  const made = feature(raw, where);
  demand(kinds.includes(made.kind) && made.weight === 1 && !(counts && made.bounds[0] < 0), where);
  return made;
};

function day(raw, where) {
  const value = text()(raw, where);
  const good = /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(value) && value >= "0001" && new Date(value).toJSON();
  return demand(value === "" || (good && good.slice(0, 10) === value), where) && value;
}

/** All fields of a task, each by its rule, and then those that must fit each other. */
function readTask(raw) {
  const kind = oneOf(Object.keys(KINDS))(raw?.skind, "kind");
  const { targets, intercept, kernel, wide, counts } = KINDS[kind];
  const question = { share: number(0, 1, 0), degree: whole(1, 2), size: whole(1, MOST_ENCODED + 2),
    threshold: number(0, 6), coin: (one, at) => demand(COIN.test(text()(one, at)), at) && one.slice(1) };
  const names = !targets ? ["mean"] : raw.sarms?.sjoint === undefined ? ["gram", "cross"] : ["joint"];
  const file = table({
    format: whole(1, 1), kind: text(), title: text(), epsilon: number(0, 16, 0),
    features: list(feature), length: scale, cap: whole(1, 1000), seed: text(), deadline: day,
    intercept: number(0, intercept ? 0.9 : 0),
    arms: table(Object.fromEntries(names.map((name) => [name, table(question)]))),
    ...(targets ? { target: target(targets, counts) } : {}),
    ...(kernel ? { kernel: table({ width: scale, pairs: whole(1, MOST_COLUMNS / 2) }) } : {}),
  })(raw, "the file");
  demand(different([...file.features, file.target].map((one) => one?.name)), "name");
  const columns = file.features.reduce((sum, one) => sum + (one.choices?.length || one.size || 1), 0);
  const size = kernel ? 2 * file.kernel.pairs : columns + (file.intercept > 0 ? 1 : 0);
  demand(columns <= MOST_ENCODED && !(kernel && file.kernel.pairs * columns > MOST_FREQUENCIES), "features");
  demand(size <= MOST_COLUMNS || (wide && names[0] !== "joint"), "features");
  return { file, questions: readQuestions(file, names, size) };
}

/** What devices report on, with the seeds that answer it. The last question has all that are left. */
function readQuestions({ arms, epsilon }, names, columns) {
  const inputs = columns + (names[0] === "joint" ? 1 : 0);
  const sum = names.reduce((sum, name) => sum + arms[name].share, 0);
  demand(Math.abs(sum - 1) <= 1e-9, "arms");
  let first = 0n;
  return names.map((name, i) => {
    const { share, size, threshold, degree, coin } = arms[name];
    const last = i === names.length - 1;
    const seeds = last ? WORD - first : BigInt(Math.floor(share * 2 ** 64));
    const question = { name, first, seeds, size, threshold, degree, coin: BigInt("0x" + coin) };
    const sketched = DEGREES[name] === 1 && inputs > SKETCHED;
    demand(seeds > 0n && degree === DEGREES[name] && size === (sketched ? WIDTH : inputs) + 1, `arms.${name}`);
    demand(withinLimits(question, epsilon, inputs), `arms.${name}, or epsilon: a report would cost more than it may, or say too little;`);
    first += seeds;
    return question;
  });
}

/** JSON in which every text begins with "s" and every number is a text that begins with "n". */
function parse(json) {
  JSON.parse(json);
  return JSON.parse(json.replace(TOKENS, (token) => token[0] === '"' ? `"s${token.slice(1)}` : `"n${token}"`));
}

/** The one form of a task: sorted names, no blanks, and numbers as Python writes them. */
function write(value, name) {
  if (Array.isArray(value)) return `[${value.map((one) => write(one, name))}]`;
  if (typeof value === "string" || WHOLE.includes(name)) return JSON.stringify(value);
  if (typeof value === "object") {
    const names = Object.keys(value).filter((one) => value[one] !== undefined).sort();
    return `{${names.map((one) => `"${one}":${write(value[one], one)}`)}}`;
  }
  const [digits, power] = value.toExponential().split("e");
  if (power >= -4 && power < 16) return Number.isInteger(value) ? `${value}.0` : `${value}`;
  return `${digits}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

/* riata.local.channel_limits: the same operations in the same order, so the same bits and decisions. */

function expMinus(x) {
  const y = x / 64;
  let power = 1;
  for (let k = 16; k >= 1; k--) power = 1 + power * y / k;
  for (let i = 0; i < 6; i++) power *= power;
  return 1 / power;
}

const density = (t) => expMinus(t * t / 2) * 0.3989422804014327;

function tail(t) {
  let term = t, total = t;
  for (let k = 3; k < 250; k += 2) {
    term = term * (t * t) / k;
    total += term;
  }
  return 0.5 - density(t) * total;
}

function unevenness({ degree, size, seeds }, inputs) {
  const lattice = 0.75 * degree * (size + 3) * 2 ** -32;
  const root = Math.sqrt(size);
  const rounding = 0.4 * degree * (2 ** -36 * root + 2 ** -48 * (size * root));
  const bits = 64 * inputs + 701;
  const weight = Number((WORD + seeds - 1n) / seeds) / 2 ** 64;
  const blocks = Number(seeds * BigInt(Math.ceil(size / 4) + 1) + (1n << 48n));
  const switching = blocks * blocks * 2 ** -128;
  return lattice + rounding + Math.sqrt((bits * 0.6931471805599453 + switching) * weight / 2);
}

function acceptance(degree, threshold, other) {
  const surely = degree * tail(threshold);
  return surely + other * (1 - surely);
}

function signal(degree, threshold, other) {
  const mass = degree === 1 ? density(threshold) : 2 * threshold * density(threshold);
  return (1 - other) * mass / acceptance(degree, threshold, other);
}

function bestThreshold(degree, other) {
  let low = 0, high = 6;
  for (let i = 0; i < 50; i++) {
    const middle = (low + high) / 2;
    const polynomial = degree === 1 ? middle : middle * middle - 1;
    if (signal(degree, middle, other) > polynomial) low = middle;
    else high = middle;
  }
  return low;
}

/** Whether a report costs at most epsilon, takes no more tries than it must, and says something. */
function withinLimits(question, epsilon, inputs) {
  const { degree, threshold } = question;
  const least = expMinus(epsilon), other = Number(question.coin) / 2 ** 64;
  const accepted = acceptance(degree, threshold, other) - 1e-13;
  const off = unevenness(question, inputs);
  const best = bestThreshold(degree, least);
  const enough = 0.5 * signal(degree, best, least);
  return 2 * off <= 0.02 * epsilon * accepted
    && 2 * acceptance(degree, threshold, least) >= acceptance(degree, best, least)
    && signal(degree, threshold, least) >= enough
    && least * (accepted + off) * (1 + 1e-12) <= other * (accepted - off)
    && signal(degree, threshold, other) >= enough;
}

/** Read the bytes of a task file: one that leaves nothing to defaults, and costs what it says. */
export async function open(bytes) {
  demand(bytes.byteLength <= MOST_BYTES, "a file of this size");
  const json = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  const { file, questions } = readTask(parse(json));
  const canonical = write(file);
  demand(json.match(TOKENS).length === canonical.match(TOKENS).length, "a field that stands twice");
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonical)));
  const key = await crypto.subtle.importKey("raw", hash, "AES-CTR", false, ["encrypt"]);
  const id = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { file, id, key, questions };
}

/* ---- The report. ---- */

/** One report: the seed that was accepted, most significant byte first. */
export async function draw(task, answers, word = randomWord) {
  const { vector, target } = await encode(task, answers);
  const choice = word();
  const question = task.questions.filter((one) => one.first <= choice).at(-1);
  const prepared = await prepare(task, question, vector, target);
  for (;;) {
    const seed = question.first + ((word() * question.seeds) >> 64n);
    const coin = word();
    const direction = lift(prepared.sketch ? await select(task, prepared, seed) : prepared.vector);
    const product = dot(await normals(task.key, seed, question.size), direction);
    const surely = (question.degree === 1 ? product : Math.abs(product)) >= question.threshold;
    if (surely || coin < question.coin) {
      const report = new Uint8Array(8);
      new DataView(report.buffer).setBigUint64(0, seed);
      return report;
    }
  }
}

/** The vector that the answers become, and the target in [-1, 1]. */
export async function encode(task, answers) {
  const { features, length, target, kernel, intercept } = task.file;
  let row = features.flatMap((feature) => encodeOne(feature, answers[feature.name]));
  row = row.map((value) => value / length);
  if (kernel || task.questions[0].name !== "joint") row = clipToUnitBall(row);
  if (kernel) row = await fourier(task, row.map((value) => value * length), kernel);
  if (intercept > 0) {
    const rest = Math.sqrt(1 - intercept);
    row = row.map((value) => value * rest);
    row.push(Math.sqrt(intercept));
  }
  return { vector: row, target: target ? encodeOne(target, answers[target.name])[0] : null };
}

function encodeOne(feature, answer) {
  const { kind, weight, center } = feature;
  if (kind === "choice") {
    return feature.choices.map((choice) => (choice === answer ? weight : 0));
  }
  const [low, high] = feature.bounds || [0, 1];
  if (kind === "yes-no" && typeof answer === "string") answer = YES.get(answer.replace(BLANKS, "").toLowerCase());
  const numbers = Array.isArray(answer) ? answer : [answer];
  const scale = weight / Math.max(high - center, center - low);
  return Array.from({ length: feature.size || 1 }, (_, i) => {
    const number = readNumber(numbers[i]);
    return Number.isNaN(number) ? 0 : (Math.min(Math.max(number, low), high) - center) * scale;
  });
}

/** The numbers that Python reads, too: decimal. Missing and unreadable answers are neutral. */
function readNumber(value) {
  if (typeof value === "number") return value;
  if (typeof value === "boolean") return Number(value);
  if (typeof value !== "string") return NaN;
  const text = value.replace(BLANKS, "");
  return DECIMAL.test(text) ? Number(text) : NaN;
}

/** What is done once, before any seed is tried. */
async function prepare(task, question, vector, target) {
  if (question.name === "joint") return { vector: join(vector, target) };
  const rows = question.name === "cross" ? vector.map((value) => value * target) : vector;
  if (question.degree !== 1 || rows.length <= SKETCHED) return { vector: rows };
  const padded = 2 ** Math.ceil(Math.log2(rows.length));
  const signs = await words(task.key, 0n, SIGNS, Math.ceil(padded / 128));
  const turned = Float64Array.from({ length: padded }, (_, i) =>
    i < rows.length ? rows[i] * (1 - 2 * ((signs[i >> 5] >>> (i & 31)) & 1)) : 0);
  for (let step = 1; step < padded; step *= 2) {
    for (let start = 0; start < padded; start += 2 * step) {
      for (let i = start; i < start + step; i++) {
        const [a, b] = [turned[i], turned[i + step]];
        turned[i] = a + b;
        turned[i + step] = a - b;
      }
    }
  }
  return { sketch: turned.map((value) => value / Math.sqrt(padded)) };
}

/** The coordinates that a seed picks of a rotated vector, scaled up. */
async function select(task, { sketch }, seed) {
  const [start, stride] = await words(task.key, seed, PLACES, 1);
  const mask = sketch.length - 1;
  const scale = Math.sqrt(sketch.length / WIDTH / (1 + Math.sqrt(8 / WIDTH)));
  const odd = (stride | 1) & mask;
  return clipToUnitBall(Array.from({ length: WIDTH }, (_, i) =>
    sketch[((start & mask) + odd * i) & mask] * scale));
}

async function fourier({ key }, row, { pairs, width }) {
  const angles = [];
  for (let j = 0; j < pairs; j++) {
    const frequencies = await normals(key, BigInt(j), row.length, FREQUENCIES);
    angles.push(dot(row, frequencies.map((value) => value / width)));
  }
  const scale = Math.sqrt(pairs);
  return [...angles.map((a) => Math.cos(a) / scale), ...angles.map((a) => Math.sin(a) / scale)];
}

/** The normal vector of a seed, by the method of Box and Muller. */
export async function normals(key, seed, size, first = 0n) {
  const random = await words(key, seed, first, Math.ceil(size / 4));
  const made = new Float64Array(size);
  for (let i = 0; i < size; i++) {
    const pair = i & ~1;
    const length = Math.sqrt(-2 * Math.log((random[pair] + 0.5) * 2 ** -32));
    const angle = random[pair + 1] * (2 * Math.PI * 2 ** -32);
    made[i] = length * (i & 1 ? Math.sin(angle) : Math.cos(angle));
  }
  return made;
}

/** The 32-bit words of the blocks (seed, first), (seed, first + 1), ... */
async function words(key, seed, first, blocks) {
  const counter = new Uint8Array(16);
  const view = new DataView(counter.buffer);
  view.setBigUint64(0, seed);
  view.setBigUint64(8, first);
  const zeros = new Uint8Array(16 * blocks);
  const bytes = await crypto.subtle.encrypt({ name: "AES-CTR", counter, length: 64 }, key, zeros);
  const read = new DataView(bytes);
  return Uint32Array.from({ length: 4 * blocks }, (_, i) => read.getUint32(4 * i, true));
}

function clipToUnitBall(row) {
  const longest = Math.max(1, Math.sqrt(dot(row, row)));
  return row.map((value) => value / longest);
}

/** Row and target in one vector. */
function join(row, target) {
  const square = (1 - TARGET_SHARE) * dot(row, row) + TARGET_SHARE;
  const longest = Math.sqrt(Math.max(1, square)), part = Math.sqrt(1 - TARGET_SHARE);
  return [...row.map((value) => value * part / longest), target * Math.sqrt(TARGET_SHARE) / longest];
}

function lift(row) {
  return [...row, Math.sqrt(Math.max(0, 1 - dot(row, row)))];
}

function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

function randomWord() {
  return crypto.getRandomValues(new BigUint64Array(1))[0];
}
