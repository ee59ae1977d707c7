// Details of the selected op or group, or of the model if nothing is selected.

class Details {
  constructor(drawing, overview) {
    this.drawing = drawing;
    this.overview = overview; // What is shown of the model.
    this.element = el("div", { class: "details", "aria-label": "Details", tabindex: "-1" });
    this.empty();
  }

  empty() {
    this.element.replaceChildren(...this.overview());
  }

  show(side, number, item) {
    if (!item) return this.empty();
    const content = item.kind === "group" ? this.group(side, number, item) : this.op(side, number, item);
    const back = el("button", { type: "button", class: "back", onclick: () => this.drawing.view.select(null) }, "‹ Model");
    this.element.replaceChildren(back, ...content.flat(Infinity).filter(Boolean));
    return undefined;
  }

  group(side, number, item) {
    const inside = new Map();
    const visit = (at) => {
      for (const child of at.children) {
        if (child.kind === "group") visit(child);
        else inside.set(child.node.op, (inside.get(child.node.op) || 0) + 1);
      }
    };
    visit(item);
    const ops = [...inside].sort((one, other) => other[1] - one[1]);
    return [
      el("p", { class: "over" }, item.times > 1 ? `Repeated ${count(item.times)} times` : "Layer"),
      el("h2", {}, item.path),
      el("button", { type: "button", class: "button", onclick: () => this.drawing.view.toggle(item) }, item.expanded ? "Close" : "Open"),
      facts([["Ops", count(item.ops)], ["Weights", item.bytes ? bytes(item.bytes) : ""], [this.drawing.mode.label, this.drawing.mode.noteOf(item)]]),
      el("h3", { class: "minor" }, "Inside"),
      el("ul", { class: "chips" }, ops.map(([name, times]) => el("li", {}, times > 1 ? `${name} × ${count(times)}` : name))),
    ];
  }

  op(side, number, item) {
    const { node, index } = item;
    const links = this.drawing.links(side, number, index);
    const isCompared = report.kind === "comparison";
    const other = side === "after" ? "before" : "after";
    const kind = node.op === "Input" || node.op === "Output" ? node.op : side === "before" && !isCompared ? "Op of the model" : "Operator";
    const calls = node.calls || [];
    return [
      el("p", { class: "over" }, kind),
      el("h2", {}, node.op),
      el("p", { class: "path" }, node.name),
      (node.problems || []).map((number) => problemCard(report.failure.errors[number])),
      this.difference(side, node),
      facts([
        ["Source", (node.sources || []).join("\n")], ["Weights", node.bytes ? bytes(node.bytes) : ""], ["MACs", node.macs ? big(node.macs) : ""],
        ["Latency", node.ms === undefined ? "" : duration(node.ms / 1000)], ...this.accelerators(item, side), ...this.errors(item),
      ]),
      this.kin(isCompared ? "In the other file" : side === "after" ? "Came from" : "Became", other, links.from, isCompared ? null : node, side),
      attributes(node),
      this.operands(side, number, node),
      this.results(side, number, item),
      this.kin(side === "after" ? "Its constants came from" : "Folded into the constants of", other, links.folded),
      calls.length > 0 && [el("h3", { class: "minor" }, "Runs"), el("ul", { class: "refs" }, calls.map((name) => el("li", {}, this.callee(side, name))))],
      el("p", {}, el("a", { class: "ref link", href: addressOf(side, number, index) }, "Link to this node")),
    ];
  }

  difference(side, node) {
    if (report.kind !== "comparison" || !node.change) return null;
    if (node.change !== "changed") return el("p", { class: `change ${node.change}` }, "Only in this file");
    return el("div", { class: "change changed" }, el("b", {}, "Differs from the other file"), el("ul", {}, node.changes.map((words) => el("li", {}, words))));
  }

  accelerators(item, side) {
    if (side !== "after" || item.isPort) return [];
    return this.drawing.modes.filter((mode) => mode.isForResult).map((mode) => [mode.label, mode.textOf(item)]);
  }

  // Of an operator how close it is to the float model, of an output how close it is to the model.
  errors(item) {
    const checked = (report.verification || []).find((each) => item.label === "Output" && each.output === item.node.name);
    if (checked) return [["Largest error", `${exponential(checked.max_absolute)}, ${exponential(checked.max_relative)} of the largest value`]];
    return this.drawing.modes.filter((mode) => mode.isBadLow).map((mode) => [mode.label, mode.textOf(item)]);
  }

  callee(side, name) {
    const number = graphs[side].findIndex((each) => each.name === name);
    return number < 0 ? name : el("button", { type: "button", class: "ref", onclick: () => this.drawing.openFunction(side, number) }, name);
  }

  operands(side, number, node) {
    const rows = (node.operands || []).map((operand, place) => {
      if (Array.isArray(operand)) return el("li", {}, this.reference(side, number, operand[0], operand[1]));
      const weight = operand.bytes > 1024 ? bytes(operand.bytes) : "";
      const role = roleOf(node, place);
      const words = [role, operand.name, operand.value, weight].filter(Boolean).join(", ");
      return el("li", { class: "const" }, el("span", { class: "type" }, operand.type), words ? ` ${words}` : " constant", operand.histogram && distribution(operand.histogram));
    });
    return rows.length ? [el("h3", { class: "minor" }, "Inputs"), el("ol", { class: "refs", start: "0" }, rows)] : [];
  }

  results(side, number, item) {
    const users = this.drawing.users(side, number, item.index);
    const types = (item.node.types || []).map((type) => el("li", {}, el("span", { class: "type" }, type)));
    return [
      types.length ? [el("h3", { class: "minor" }, "Results"), el("ol", { class: "refs" }, types)] : [],
      users.length ? [el("h3", { class: "minor" }, "Used by"), el("ul", { class: "refs" }, some(users, 12, (user) => el("li", {}, this.reference(side, number, user))))] : [],
    ].flat();
  }

  reference(side, number, index, result) {
    const node = this.drawing.node(side, number, index);
    const type = result === undefined || !node.types ? "" : node.types[result] || "";
    return el("button", { type: "button", class: "ref", onclick: () => this.drawing.show(side, number, index) },
      el("b", {}, node.op), ` ${tail(plain(node.name), 140)}`, type && el("span", { class: "type" }, ` ${type}`));
  }

  kin(title, side, places, node, own) {
    if (!places.length) {
      const names = own === "after" && node && node.names ? node.names : [];
      return names.length ? [el("h3", { class: "minor" }, title), el("ul", { class: "refs" }, names.map((name) => el("li", {}, name)))] : [];
    }
    const rows = some(places, 20, ([number, index]) => el("li", {}, this.reference(side, number, index)));
    return [el("h3", { class: "minor" }, title), el("ul", { class: "refs kin" }, rows)];
  }
}

function some(list, limit, row) {
  const rows = list.slice(0, limit).map(row);
  return list.length > limit ? [...rows, el("li", { class: "dim" }, `and ${count(list.length - limit)} more`)] : rows;
}

function facts(pairs) {
  const known = pairs.filter(([, value]) => value);
  return known.length > 0 && el("dl", { class: "facts" }, known.map(([name, value]) => [el("dt", {}, name), el("dd", {}, ...linesOfText(value))]));
}

function attributes(node) {
  const pairs = Object.entries(node.attributes || {});
  return pairs.length ? [el("h3", { class: "minor" }, "Attributes"), facts(pairs)] : [];
}

// The distribution of a constant's values: a small chart, and its figures in words.
function distribution(found) {
  const figure = (value) => (typeof value === "number" ? String(Number(value.toPrecision(4))) : value || "");
  const share = found.zeros / found.looked_at;
  const words = [
    found.low !== undefined && `${figure(found.low)} to ${figure(found.high)}`, found.mean !== undefined && `mean ${figure(found.mean)} ± ${figure(found.deviation)}`,
    found.zeros > 0 && `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}% zeros`, found.not_finite && many(found.not_finite, "infinity or NaN"),
    found.looked_at < found.numbers && `from ${count(found.looked_at)} of ${count(found.numbers)}`,
  ].filter(Boolean).join(", ");
  const highest = Math.max(...(found.bins || []));
  const chart = found.bins && svg("svg", { class: "histogram", viewBox: "0 0 240 36", preserveAspectRatio: "none", "aria-hidden": "true" },
    found.bins.map((number, index) => svg("rect", { x: index * (240 / found.bins.length), y: 36 - (number / highest) * 36, width: 240 / found.bins.length - 1, height: (number / highest) * 36 })));
  return el("div", {}, chart, el("small", { class: "dim" }, words));
}

function problemCard(problem) {
  return el("div", { class: "problem" }, el("p", {}, el("b", {}, problem.code), " ", linesOfText(problem.message)), problem.hint && el("p", {}, el("b", {}, "What to do: "), problem.hint.replaceAll("\n", " ")));
}
