/* Node's side of test_collect_in_node.py. */
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const [, , module, command, input, output] = process.argv;
const { draw, encode, open } = await import(pathToFileURL(module));
const read = () => JSON.parse(fs.readFileSync(input, "utf-8"));

if (command === "vectors") {
  const reports = [];
  for (const { task: file, rows } of read()) {
    const task = await open(new TextEncoder().encode(file));
    const made = [];
    for (const { row, words } of rows) {
      let next = 0;
      const word = () => BigInt(`0x${words.slice(16 * next, 16 * ++next)}`);
      // Who needs more words than Python did has gone another way.
      const report = await draw(task, row, word).catch(() => []);
      made.push(Buffer.from(report).toString("hex"));
    }
    reports.push(made);
  }
  fs.writeFileSync(output, JSON.stringify(reports));
} else if (command === "answers") {
  const encoded = [];
  for (const { task: file, name, texts } of read()) {
    const task = await open(new TextEncoder().encode(file));
    const one = [];
    for (const text of texts) one.push((await encode(task, { [name]: text })).vector[0]);
    encoded.push(one);
  }
  fs.writeFileSync(output, JSON.stringify(encoded));
} else if (command === "decide") {
  const decisions = [];
  for (const file of read()) {
    decisions.push(await open(Buffer.from(file, "base64")).then((task) => task.id, () => ""));
  }
  fs.writeFileSync(output, JSON.stringify(decisions));
} else {
  const { task: file, rows, each } = read();
  const task = await open(new TextEncoder().encode(file));
  const parts = [];
  for (const row of rows) {
    for (let i = 0; i < each; i++) parts.push(Buffer.from(await draw(task, row)));
  }
  fs.writeFileSync(output, Buffer.concat(parts));
}
