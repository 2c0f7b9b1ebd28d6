/* The survey page: shows the questions, encodes the answers here, shows what leaves, sends it.
 *
 * Answers, and bytes that nobody sent, are kept nowhere but in the open page. Just before bytes are
 * sent they are written down under the link that they belong to, so that a second attempt sends the
 * same ones. Once they have arrived, all that is kept is that this link has answered. */

import { draw, open } from "/riata.js";

/* Another language is another entry. */
const TEXTS = {
  en: {
    lead: "Your answers stay on this device. Eight random-looking bytes leave it.",
    explain: "What is sent, and what it means",
    how: [
      "This page turns all your answers together into eight bytes, here, with random numbers of your own device. Only these bytes are sent. The collector cannot turn them back into your answers.",
      "Whatever you answer, any eight bytes can come out. For any two ways to answer, no bytes are more than {odds} times as likely for one as for the other (epsilon {epsilon}). That holds against everybody, for ever, whatever else they know.",
      "From the bytes of many thousands of people together, averages can be learned.",
      "You may leave out any question. No address and no name is stored.",
    ],
    none: "No answer", yes: "Yes", no: "No",
    range: "A number from {low} to {high}",
    encode: "Encode my answers", ready: "These eight bytes will leave your device",
    nothing: "Nothing has been sent yet. They are the whole message.",
    restart: "Start again",
    restarting: "If you start again, these bytes are thrown away. Nobody has seen them.",
    send: "Send the eight bytes", sending: "Sending …",
    left: "These eight bytes left your device",
    sent: "Thank you. The eight bytes have arrived. Nothing else was sent, and nothing of your answers is kept on this device.",
    pending: "Eight bytes may not have arrived",
    resend: "Your answers were encoded into these eight bytes and sent, but this device did not hear that they arrived. Send the same ones again. New ones would tell more about you.",
    theirs: "Somebody on this device has sent eight bytes, and did not hear that they arrived. If that was you, send the same ones again.",
    answered: "This link has been used",
    thanks: "The eight bytes have arrived. Nothing of the answers is kept on this device. Another person needs a link of their own.",
    before: "Somebody has answered on this device",
    another: "Another person answers",
    once: "Answer only once: two answers of one person tell more about them than this page says.",
    drop: "The bytes of the person before you are then removed from this device. Answer only once: two answers of one person tell more about them than this page says.",
    failed: "They could not be sent. Try again: the same eight bytes will be sent.",
    refused: "The survey did not accept them. It may be over, or the link may have been used.",
    forgetful: "They were not sent, because this browser does not let the page remember what it sends. Allow it to store data, or use a window that is not private.",
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
    restart: "Von vorn beginnen",
    restarting: "Beginnen Sie von vorn, werden diese Bytes verworfen. Niemand hat sie gesehen.",
    send: "Die acht Bytes senden", sending: "Wird gesendet …",
    left: "Diese acht Bytes haben Ihr Gerät verlassen",
    sent: "Danke. Die acht Bytes sind angekommen. Sonst wurde nichts gesendet, und von Ihren Antworten bleibt nichts auf diesem Gerät.",
    pending: "Acht Bytes sind vielleicht nicht angekommen",
    resend: "Aus Ihren Antworten wurden diese acht Bytes. Sie wurden gesendet, aber dieses Gerät hat nicht erfahren, ob sie angekommen sind. Senden Sie dieselben noch einmal. Neue würden mehr über Sie verraten.",
    theirs: "Jemand hat auf diesem Gerät acht Bytes gesendet und nicht erfahren, ob sie angekommen sind. Waren Sie das, senden Sie dieselben noch einmal.",
    answered: "Dieser Link wurde benutzt",
    thanks: "Die acht Bytes sind angekommen. Von den Antworten bleibt nichts auf diesem Gerät. Wer sonst antworten möchte, braucht einen eigenen Link.",
    before: "Auf diesem Gerät hat schon jemand geantwortet",
    another: "Jemand anderes antwortet",
    once: "Antworten Sie nur einmal: Zwei Antworten eines Menschen verraten mehr über ihn, als diese Seite sagt.",
    drop: "Die Bytes der Person vor Ihnen werden dann von diesem Gerät entfernt. Antworten Sie nur einmal: Zwei Antworten eines Menschen verraten mehr über ihn, als diese Seite sagt.",
    failed: "Sie konnten nicht gesendet werden. Versuchen Sie es noch einmal: Es sind dieselben Bytes.",
    refused: "Die Umfrage hat sie nicht angenommen. Vielleicht ist sie vorbei, oder der Link wurde schon benutzt.",
    forgetful: "Sie wurden nicht gesendet, weil dieser Browser die Seite nicht speichern lässt, was sie sendet. Erlauben Sie ihr, Daten zu speichern, oder nehmen Sie ein Fenster, das nicht privat ist.",
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

/** What this browser keeps of one link: nothing, the bytes that may have left, or that they arrived.
 *  Its name is a digest, so that it does not show the link, and another link finds nothing. */
class Kept {
  static async of(task, token) {
    const named = new TextEncoder().encode(`riata survey ${task.id} ${token}`);
    const kept = new Kept();
    kept.name = `riata ${toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", named)))}`;
    return kept;
  }

  get value() {
    try {
      return localStorage.getItem(this.name);
    } catch { /* not allowed: `write` says so before anything is sent */
      return null;
    }
  }

  get arrived() { return this.value === "arrived"; }
  get bytes() { return /^[0-9a-f]{16}$/.test(this.value) ? this.value : null; }

  write(value) {
    localStorage.setItem(this.name, value);
    if (this.value !== value) throw new Error("not kept");
  }

  remove() { localStorage.removeItem(this.name); }
}

const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The section about the eight bytes, with up to two buttons: to send, and to begin anew. */
function show(title, line, hex, onSend, anew) {
  at("questions").hidden = true;
  at("questions").replaceChildren();
  at("outgoing-title").textContent = title;
  at("outgoing-text").textContent = line;
  at("bytes").textContent = hex.replace(/..(?!$)/g, "$& ");
  at("bytes").parentNode.hidden = !hex;
  at("send").hidden = !onSend;
  at("send").onclick = onSend;
  at("anew").hidden = at("anew-text").hidden = !anew;
  if (anew) [at("anew").textContent, at("anew-text").textContent, at("anew").onclick] = anew;
  at("outgoing").hidden = false;
}

/** Where there are no links, only people who share a device know whose answer it is. */
function showArrived({ token, kept }, hex = "") {
  const title = hex ? text.left : token ? text.answered : text.before;
  const anew = () => { kept.remove(); location.reload(); };
  show(title, token && !hex ? text.thanks : "", hex, null, token ? null : [text.another, text.once, anew]);
}

function showPending(survey, mine = survey.token) {
  const { token, kept } = survey, hex = kept.bytes;
  const anew = () => { kept.remove(); location.reload(); };
  show(text.pending, mine ? text.resend : text.theirs, mine ? hex : "", () => send(survey, hex),
    token ? null : [text.another, text.drop, anew]);
}

function showReady(survey, hex) {
  show(text.ready, text.nothing, hex, () => send(survey, hex),
    [text.restart, text.restarting, () => location.reload()]);
  /* The second click of two on the button before must not send what nobody has seen. */
  at("send").disabled = at("anew").disabled = true;
  setTimeout(() => {
    at("send").disabled = at("anew").disabled = false;
    at("send").focus();
  }, 800);
}

/** Of several tabs with the same link one sends at a time, and none sends other bytes than another. */
async function send(survey, hex) {
  at("send").disabled = at("anew").disabled = true;
  at("state").textContent = text.sending;
  let line = text.failed;
  try {
    line = await navigator.locks.request(survey.kept.name, () => post(survey, hex));
  } catch { /* the connection, most likely */ }
  at("state").textContent = line;
  at("send").disabled = at("anew").disabled = false;
}

async function post(survey, hex) {
  const { task, token, kept } = survey;
  if (kept.arrived) {
    showArrived(survey);
    return "";
  }
  if (kept.bytes && kept.bytes !== hex) {
    showPending(survey);
    return "";
  }
  try {
    kept.write(hex);
  } catch {
    return text.forgetful;
  }
  showPending(survey, true);
  const body = Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));
  const headers = { "Content-Type": "application/octet-stream" };
  if (token) headers["Riata-Token"] = token;
  const answer = await fetch(`/tasks/${task.id}/reports`, {
    method: "POST", body, headers, credentials: "omit",
  });
  if (answer.status !== 201) return answer.status === 400 ? text.refused : text.failed;
  kept.write("arrived");
  showArrived(survey, hex);
  return text.sent;
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
  /* Whoever comes with another link, or comes back to this page, begins anew. */
  addEventListener("hashchange", () => location.reload());
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  const token = location.hash.slice(1);
  const survey = { task, token, kept: await Kept.of(task, token) };
  if (survey.kept.arrived) {
    showArrived(survey);
    return;
  }
  if (survey.kept.bytes) {
    showPending(survey);
    return;
  }
  const asked = target ? [...features, target] : features;
  const form = at("questions");
  form.append(...asked.map(question), make("button", { type: "submit" }, text.encode));
  form.hidden = false;
  form.onsubmit = async (event) => {
    event.preventDefault();
    form.lastChild.disabled = true;
    showReady(survey, toHex(await draw(task, answers(form, asked))));
  };
}

main().catch(() => { at("state").textContent = isSecureContext ? text.closed : text.insecure; });
