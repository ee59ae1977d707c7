// The settings: fields made of the server's table of them, their values as data, and how they are shown.

import { json } from "./requests.js";

const table = json("page/settings.json");

const shown = (value) => (Array.isArray(value) ? value.join(", ") : value && typeof value === "object" ? JSON.stringify(value) : String(value));
const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const listed = (text) => text.split(/[,\n]/).map((part) => part.trim()).filter(Boolean);

// The name and the rest of a line, as in `image: 1, 224, 224, 3`.
function named(line) {
  const at = line.lastIndexOf(":");
  if (at < 1 || at === line.length - 1) throw new Error(`"${line}" has no colon between the name and the rest`);
  return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}

function sizes(text) {
  return listed(text.replace(/^\[|\]$/g, "")).map((size) => {
    if (!/^(-1|\d+)$/.test(size)) throw new Error(`"${size}" is not a size: whole numbers, or -1 for as it is`);
    return Number(size);
  });
}

// Kind -> how a field of it is made, read (`undefined` for the default) and filled.
const whole = { read: (input) => input.value.trim() || undefined, fill: (input, value) => { input.value = value; } };
const area = (example) => el("textarea", { rows: 2, spellcheck: "false", placeholder: example });
const KINDS = {
  flag: {
    make: (field) => el("input", { type: "checkbox", checked: field.default === true }),
    read: (input, field) => (input.checked === (field.default === true) ? undefined : input.checked),
    fill: (input, value) => { input.checked = value; },
  },
  choice: {
    make: (field) => el("select", {},
      el("option", { value: "" }, field.default === null ? "default" : `default: ${shown(field.default)}`),
      field.choices.filter((each) => each !== field.default).map((each) => el("option", { value: JSON.stringify(each) }, shown(each)))),
    read: (input) => (input.value ? JSON.parse(input.value) : undefined),
    fill: (input, value, field) => { input.value = value === field.default ? "" : JSON.stringify(value); },
  },
  number: {
    make: (field) => el("input", { type: "number", step: "any", min: field.minimum, placeholder: field.default ?? "" }),
    read: (input) => {
      if (!input.validity.valid) throw new Error("that is no number that it can be");
      return input.value ? Number(input.value) : undefined;
    },
    fill: whole.fill,
  },
  text: { make: (field) => el("input", { type: "text", spellcheck: "false", placeholder: unquoted(field.example) }), ...whole },
  list: {
    make: (field) => el("input", { type: "text", spellcheck: "false", placeholder: field.example ? JSON.parse(field.example).join(", ") : "names, with commas" }),
    read: (input) => (input.value.trim() ? listed(input.value) : undefined),
    fill: (input, value) => { input.value = value.join(", "); },
  },
  shapes: {
    make: (field) => area(Object.entries(JSON.parse(field.example)).map(([name, shape]) => `${name}: ${shape.join(", ")}`)),
    read: (input) => (input.value.trim() ? Object.fromEntries(lines(input.value).map(named).map(([name, rest]) => [name, sizes(rest)])) : undefined),
    fill: (input, value) => { input.value = Object.entries(value).map(([name, shape]) => `${name}: ${shape.map((size) => size ?? -1).join(", ")}`).join("\n"); },
  },
  names: {
    make: (field) => area(Object.entries(JSON.parse(field.example)).map(([name, other]) => `${name}: ${other}`)),
    read: (input) => (input.value.trim() ? Object.fromEntries(lines(input.value).map(named)) : undefined),
    fill: (input, value) => { input.value = Object.entries(value).map((pair) => pair.join(": ")).join("\n"); },
  },
  choices: {
    make: (field, id) => el("div", { class: "choices" }, field.choices.map((each) =>
      el("label", { for: `${id}-${each}` }, el("input", { type: "checkbox", id: `${id}-${each}`, value: each }), each))),
    read: (box) => {
      const on = [...box.querySelectorAll(":checked")].map((input) => input.value);
      return on.length ? on : undefined;
    },
    fill: (box, value) => box.querySelectorAll("input").forEach((input) => { input.checked = value.includes(input.value); }),
  },
};
const unquoted = (example) => (example ? String(JSON.parse(example)) : "");

// A setting that can't be read; `input` is where it is.
export class WrongField extends Error {
  constructor(label, problem, input) {
    super(`${label}: ${problem.message}.`);
    this.input = input;
  }
}

export class SettingFields {
  // `common` and `rare` are where the fields go.
  async draw(common, rare) {
    const { groups, takes_keras: takesKeras } = await table;
    if (takesKeras) document.getElementById("keras").textContent = "A Keras file (.keras, .h5) is accepted, too.";
    this.groups = groups.map((group) => {
      const fields = group.fields.map((field) => this.made(group, field));
      const boxes = [[common, true], [rare, false]].map(([where, is]) => {
        const own = fields.filter(({ field }) => field.is_common === is).map(({ box }) => box);
        const box = el("fieldset", { class: "group", hidden: !own.length }, el("legend", {}, group.title), el("div", { class: "fields" }, own));
        where.append(box);
        return own.length ? box : null;
      });
      return { ...group, fields, boxes: boxes.filter(Boolean) };
    });
  }

  made(group, field) {
    const id = `set-${group.inside ? `${group.inside}-` : ""}${field.name}`;
    const kind = KINDS[field.kind];
    const input = kind.make(field, id);
    const several = field.kind === "choices";
    const help = el("p", { class: "dim", id: `${id}-help` }, field.text);
    input.id = id;
    input.setAttribute("aria-describedby", help.id);
    if (several) {
      input.setAttribute("role", "group");
      input.setAttribute("aria-label", field.label);
    }
    const label = several ? el("p", { class: "label", "aria-hidden": "true" }, field.label) : el("label", { for: id }, field.label);
    const box = field.kind === "flag" ? el("div", {}, el("div", { class: "check" }, input, label), help) : el("div", {}, label, input, help);
    return { field, input, box, kind };
  }

  // Shows the groups that have an effect: `chosen` has the target, and the settings that are objects and are wanted.
  show(chosen) {
    for (const group of this.groups || []) {
      group.is_shown = (!group.target || group.target === chosen.target) && (!["quantize", "verify"].includes(group.inside) || Boolean(chosen[group.inside]));
      for (const box of group.boxes) box.hidden = !group.is_shown;
    }
  }

  // Returns the settings that are not defaults, as data.
  read() {
    const found = {};
    for (const { inside, fields, is_shown } of this.groups || []) {
      for (const { field, input, kind } of is_shown ? fields : []) {
        let value;
        try {
          value = kind.read(input, field);
        } catch (problem) {
          throw new WrongField(field.label, problem, input);
        }
        if (value === undefined) continue;
        if (inside) found[inside] = { ...found[inside], [field.name]: value };
        else found[field.name] = value;
      }
    }
    return found;
  }

  // Fills the fields, and returns the settings that have none.
  fill(settings) {
    const rest = structuredClone(settings);
    for (const { inside, fields } of this.groups || []) {
      const values = inside ? rest[inside] : rest;
      if (!values || typeof values !== "object") continue;
      for (const { field, input, kind } of fields) {
        if (!(field.name in values) || (field.kind === "choice" && typeof values[field.name] === "object")) continue;
        kind.fill(input, values[field.name], field);
        delete values[field.name];
      }
      if (inside && !Object.keys(values).length) delete rest[inside];
    }
    return rest;
  }
}

// Returns settings as labels and texts, for people.
export async function summary(settings) {
  const { labels } = await table;
  const label = (name) => labels[name] || name.replaceAll("_", " ");
  const found = [];
  for (const [name, value] of Object.entries(settings || {})) {
    const inside = value && typeof value === "object" && !Array.isArray(value) && ["quantize", "verify", "iree", "limits"].includes(name);
    if (name === "target") found.push(["Target", shown(value)]);
    else if (name === "quantize" && !inside) found.push([label(name), shown(value)]);
    else if (inside) {
      found.push([label(name), value.mode ? shown(value.mode) : ""]);
      found.push(...Object.entries(value).filter(([each]) => each !== "mode").map(([each, own]) => [label(each), own === true ? "" : shown(own)]));
    } else if (value !== false) found.push([label(name), value === true ? "" : shown(value)]);
  }
  return found;
}

// Returns the text of a diagnostic with the labels of fields in place of the command's flags.
export async function inBrowser(text) {
  const { flags, labels } = await table;
  return String(text || "")
    .replace(/ \((?:[^()]*--[^()]*|\w+=[^()]*)\)/g, "")
    .replace(/(--[a-z][a-z0-9-]*)( [A-Z][A-Z0-9.|]*\b)?/g, (all, flag) => (flags[flag] ? `“${flags[flag]}”` : all))
    .replace(/(“[^”]+”)( \S+)(?: \1( \S+))+/g, (all, label) => `${label}${all.split(label).slice(1).join("").trim().replace(/^|\s+/g, (gap) => (gap ? ", " : " "))}`)
    .replace(/(?<![(\w])(\w+)=(\d+|True\b)/g, (all, name, value) => (labels[name] ? `“${labels[name]}”${value === "True" ? "" : ` ${value}`}` : all))
    .replace(/`(\w+)`/g, (all, name) => (labels[name] ? `“${labels[name]}”` : all));
}
