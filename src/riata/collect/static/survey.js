/* The survey page: shows the questions, encodes the answers here, shows what leaves, sends it. */

import { draw, open } from "/riata.js";

/* Another language is another entry. */
const TEXTS = {
  en: {
    lead: "Your answers stay on this device. Eight random-looking bytes leave it.",
    explain: "What is sent, and what it means",
    how: [
      "This page turns all your answers together into eight bytes, here, with dice of your own device. Only these bytes are sent. The collector cannot turn them back into your answers.",
      "Whatever you answer, any eight bytes can come out. For any two ways to answer, no bytes are more than {odds} times as likely for one as for the other (epsilon {epsilon}). That holds against everybody, for ever, whatever else they know.",
      "From the bytes of many thousands of people together, averages can be learned.",
      "You may leave out any question. No address and no name is stored.",
    ],
    none: "No answer", yes: "Yes", no: "No",
    range: "A number from {low} to {high}",
    encode: "Encode my answers", ready: "These eight bytes will leave your device",
    nothing: "Nothing has been sent yet. They are the whole message.",
    send: "Send the eight bytes", sending: "Sending …",
    left: "These eight bytes left your device",
    sent: "Thank you. The eight bytes have arrived. Nothing else was sent.",
    again: "You have answered already. The eight bytes below were sent; they would be the same again.",
    failed: "They could not be sent. Try again: the same eight bytes will be sent.",
    refused: "The survey did not accept them. It may be over.",
    closed: "The survey cannot be shown.",
    insecure: "This page can encode answers only over https. Ask who sent you the link.",
    identity: "Task {id}",
  },
  de: {
    lead: "Ihre Antworten bleiben auf diesem Gerät. Acht zufällig wirkende Bytes verlassen es.",
    explain: "Was gesendet wird, und was es bedeutet",
    how: [
      "Diese Seite macht aus all Ihren Antworten zusammen acht Bytes, hier, mit dem Zufall Ihres eigenen Geräts. Nur diese Bytes werden gesendet. Der Sammler kann daraus nicht auf Ihre Antworten schließen.",
      "Was Sie auch antworten: Jede Folge von acht Bytes ist möglich. Für je zwei Arten zu antworten ist keine Folge bei der einen mehr als {odds}-mal so wahrscheinlich wie bei der anderen (Epsilon {epsilon}). Das gilt gegen jeden, für immer, was er auch sonst weiß.",
      "Aus den Bytes vieler tausend Menschen zusammen lassen sich Durchschnitte lernen.",
      "Sie dürfen jede Frage auslassen. Weder Adresse noch Name wird gespeichert.",
    ],
    none: "Keine Antwort", yes: "Ja", no: "Nein",
    range: "Eine Zahl von {low} bis {high}",
    encode: "Meine Antworten kodieren", ready: "Diese acht Bytes werden Ihr Gerät verlassen",
    nothing: "Noch wurde nichts gesendet. Sie sind die ganze Nachricht.",
    send: "Die acht Bytes senden", sending: "Wird gesendet …",
    left: "Diese acht Bytes haben Ihr Gerät verlassen",
    sent: "Danke. Die acht Bytes sind angekommen. Sonst wurde nichts gesendet.",
    again: "Sie haben schon geantwortet. Diese acht Bytes wurden gesendet; es wären wieder dieselben.",
    failed: "Sie konnten nicht gesendet werden. Versuchen Sie es noch einmal: Es sind dieselben Bytes.",
    refused: "Die Umfrage hat sie nicht angenommen. Vielleicht ist sie vorbei.",
    closed: "Die Umfrage kann nicht angezeigt werden.",
    insecure: "Diese Seite kann Antworten nur über https verschlüsseln. Fragen Sie, wer Ihnen den Link geschickt hat.",
    identity: "Aufgabe {id}",
  },
};
const language = navigator.languages.map((one) => one.slice(0, 2)).find((one) => TEXTS[one]) || "en";
const text = TEXTS[language];
const at = (id) => document.getElementById(id);
const fill = (line, values) => line.replace(/\{(\w+)\}/g, (_, name) => values[name]);

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** One question: a number, yes or no, or a choice. All of them may stay without an answer.
 *  Fields have names of their own: one that a task chose could hide a property of the form. */
function question(feature, number) {
  const id = `q${number}`;
  const label = feature.question || feature.name;
  if (feature.kind === "number") {
    const [low, high] = feature.bounds;
    const field = make("input", { id, type: "number", name: id, min: low, max: high, step: "any" });
    field.setAttribute("aria-describedby", `${id}-hint`);
    const hint = make("p", { id: `${id}-hint`, className: "hint" }, fill(text.range, { low, high }));
    return make("div", { className: "question" }, make("label", { htmlFor: id }, label), field, hint);
  }
  if (feature.kind === "vector") {
    const [low, high] = feature.bounds;
    const fields = Array.from({ length: feature.size }, (_, i) => {
      const field = make("input", { type: "number", name: id, min: low, max: high, step: "any" });
      field.setAttribute("aria-label", `${label} ${i + 1}`);
      return field;
    });
    const hint = make("p", { className: "hint" }, fill(text.range, { low, high }));
    return make("fieldset", {}, make("legend", {}, label), ...fields, hint);
  }
  const options = feature.kind === "choice"
    ? feature.choices.map((choice) => [choice, choice])
    : [["yes", text.yes], ["no", text.no]];
  const rows = [...options, ["", text.none]].map(([value, shown], i) => {
    const radio = make("input", { id: `${id}-${i}`, type: "radio", name: id, value, checked: value === "" });
    return make("div", { className: "option" }, radio, make("label", { htmlFor: radio.id }, shown));
  });
  return make("fieldset", {}, make("legend", {}, label), ...rows);
}

function answers(form, features) {
  const given = new FormData(form);
  return Object.fromEntries(features.map(({ name, kind }, number) =>
    [name, kind === "vector" ? given.getAll(`q${number}`) : given.get(`q${number}`) || null]));
}

function showBytes(hex, heading, line) {
  at("outgoing-title").textContent = heading;
  at("outgoing-text").textContent = line;
  at("bytes").textContent = hex.match(/../g).join(" ");
  at("outgoing").hidden = false;
}

const recall = (task) => JSON.parse(localStorage.getItem(task.id) || "null");

/** Remember the first report that was drawn, in this tab or another, and give it back. */
function first(task, report) {
  const held = recall(task);
  if (held) return held;
  const drawn = { report, sent: false };
  localStorage.setItem(task.id, JSON.stringify(drawn));
  return drawn;
}

async function send(task, memory) {
  const button = at("send");
  button.disabled = true;
  at("state").textContent = text.sending;
  try {
    const body = Uint8Array.from(memory.report.match(/../g), (pair) => parseInt(pair, 16));
    const headers = { "Content-Type": "application/octet-stream" };
    if (location.hash.length > 1) headers["Riata-Token"] = location.hash.slice(1);
    const answer = await fetch(`/tasks/${task.id}/reports`, {
      method: "POST", body, headers, credentials: "omit",
    });
    if (answer.status === 201) {
      localStorage.setItem(task.id, JSON.stringify({ ...memory, sent: true }));
      showBytes(memory.report, text.left, "");
      at("state").textContent = text.sent;
      button.hidden = true;
      return;
    }
    at("state").textContent = answer.status === 400 ? text.refused : text.failed;
  } catch {
    at("state").textContent = text.failed;
  }
  button.disabled = false;
}

/** Ready to send, now or again: the same bytes, because new ones would spend epsilon again. */
function ready(task, memory) {
  at("questions").hidden = true;
  at("questions").replaceChildren();
  if (memory.sent) {
    showBytes(memory.report, text.left, text.again);
    at("send").hidden = true;
    return;
  }
  showBytes(memory.report, text.ready, text.nothing);
  at("send").hidden = false;
  at("send").onclick = () => send(task, memory);
  /* The second click of two on the button before must not send what nobody has seen. */
  at("send").disabled = true;
  setTimeout(() => {
    at("send").disabled = false;
    at("send").focus();
  }, 800);
}

async function main() {
  document.documentElement.lang = language;
  at("lead").textContent = text.lead;
  at("explain-title").textContent = text.explain;
  at("send").textContent = text.send;
  const answer = await fetch("/task", { credentials: "omit" });
  const task = await open(new Uint8Array(await answer.arrayBuffer()));
  const { title, epsilon, features, target } = task.file;
  document.title = at("title").textContent = title || "riata";
  const odds = Math.exp(epsilon).toLocaleString(language, { maximumSignificantDigits: 2 });
  at("explain-text").append(...text.how.map((line) => make("p", {}, fill(line, { odds, epsilon }))));
  at("footer").textContent = fill(text.identity, { id: task.id });
  if (recall(task)) {
    ready(task, recall(task));
    return;
  }
  const asked = target ? [...features, target] : features;
  const form = at("questions");
  form.append(...asked.map(question), make("button", { type: "submit" }, text.encode));
  form.hidden = false;
  form.onsubmit = async (event) => {
    event.preventDefault();
    form.lastChild.disabled = true;
    const held = recall(task);
    const report = held ? [] : await draw(task, answers(form, asked));
    const hex = Array.from(report, (byte) => byte.toString(16).padStart(2, "0")).join("");
    ready(task, first(task, hex));
  };
}

main().catch(() => { at("state").textContent = isSecureContext ? text.closed : text.insecure; });
