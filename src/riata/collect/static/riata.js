/* The device's side of a riata task: from answers to the eight bytes that leave, and nothing else.
 *
 * The same as riata.local.Client in Python, word for word of the randomness. No dependencies:
 * WebCrypto gives SHA-256, AES-256-CTR and random words.
 *
 *     const task = await open(bytesOfTheTaskFile);
 *     const report = await draw(task, {age: 44, smokes: "no"});   // Uint8Array of 8 bytes
 */

const WORD = 1n << 64n;
const ARMS = { mean: ["mean"], "sparse-mean": ["mean"] };
const SKETCHED = 2048, WIDTH = 512;
const SIGNS = 1n << 40n, PLACES = 1n << 41n, FREQUENCIES = 1n << 42n;
const YES = new Map(Object.entries({ yes: 1, no: 0, true: 1, false: 0, 1: 1, 0: 0 }));
const BLANKS = /^[ \t\n\r\f\v]+|[ \t\n\r\f\v]+$/g;
const DECIMAL = /^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?$/i;

/** Read the bytes of a task file, and refuse one that would cost more than it says. */
export async function open(bytes) {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const key = await crypto.subtle.importKey("raw", hash, "AES-CTR", false, ["encrypt"]);
  const file = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  const id = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const names = ARMS[file.kind] || ["gram", "cross"];
  let first = 0n;
  const arms = names.map((name, i) => {
    const { share, size, threshold, degree, coin } = file.arms[name];
    const last = i === names.length - 1;
    const seeds = last ? WORD - first : BigInt(Math.floor(share * 2 ** 64));
    const arm = { name, first, seeds, size, threshold, degree, coin: BigInt("0x" + coin) };
    if (!(Number(arm.coin) / 2 ** 64 >= Math.exp(-file.epsilon))) {
      throw new Error(`The arm ${name} would cost more than epsilon ${file.epsilon}.`);
    }
    first += seeds;
    return arm;
  });
  return { file, id, key, arms };
}

/** One report: the seed that was accepted, most significant byte first. */
export async function draw(task, answers, word = randomWord) {
  const { vector, target } = await encode(task, answers);
  const choice = word();
  const arm = task.arms.filter((one) => one.first <= choice).at(-1);
  const carried = await carry(task, arm, vector, target);
  for (;;) {
    const seed = arm.first + ((word() * arm.seeds) >> 64n);
    const coin = word();
    const direction = lift(carried.sketch ? await part(task, carried, seed) : carried.vector);
    const product = dot(await normals(task.key, seed, arm.size), direction);
    const likely = (arm.degree === 1 ? product : Math.abs(product)) >= arm.threshold;
    if (likely || coin < arm.coin) {
      const report = new Uint8Array(8);
      new DataView(report.buffer).setBigUint64(0, seed);
      return report;
    }
  }
}

/** The vector that the answers become, of length at most 1, and the target in [-1, 1]. */
export async function encode(task, answers) {
  const { features, length, target, kernel, intercept } = task.file;
  let row = features.flatMap((feature) => encodeOne(feature, answers[feature.name]));
  row = intoBall(row.map((value) => value / length));
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
async function carry(task, arm, vector, target) {
  const rows = arm.name === "cross" ? vector.map((value) => value * target) : vector;
  if (arm.degree !== 1 || rows.length <= SKETCHED) return { vector: rows };
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
async function part(task, { sketch }, seed) {
  const [start, stride] = await words(task.key, seed, PLACES, 1);
  const mask = sketch.length - 1;
  const scale = Math.sqrt(sketch.length / WIDTH / (1 + Math.sqrt(8 / WIDTH)));
  const odd = (stride | 1) & mask;
  return intoBall(Array.from({ length: WIDTH }, (_, i) =>
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

function intoBall(row) {
  const longest = Math.max(1, Math.sqrt(dot(row, row)));
  return row.map((value) => value / longest);
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
