// Details of the selected op or group, beside the drawing.

class Details {
  constructor(report) {
    this.report = report; // Has `show(side, number, index)`, `node(side, number, index)`, `links`.
    this.element = el("aside", { class: "details", "aria-label": "Details of the selected op", tabindex: "-1" });
    this.empty();
  }

  empty() {
    this.element.replaceChildren(
      el("h3", {}, "Nothing selected"),
      el("p", { class: "dim" }, "Choose an op to see its types, its attributes, its origin and what it became."),
    );
  }

  show(side, number, item) {
    if (!item) return this.empty();
    const content = item.kind === "group" ? this.group(side, number, item) : this.op(side, number, item);
    this.element.replaceChildren(...content.flat(Infinity).filter(Boolean));
    this.element.scrollTop = 0;
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
      el("p", { class: "over" }, "Layer"),
      el("h3", {}, item.path),
      el("button", { type: "button", class: "button", onclick: () => this.report.toggle(item) }, item.expanded ? "Close" : "Open"),
      facts([["Ops", count(item.ops)], ["Weights", item.bytes ? bytes(item.bytes) : ""]]),
      el("h4", {}, "Inside"),
      el("ul", { class: "chips" }, ops.map(([name, times]) => el("li", {}, times > 1 ? `${name} × ${count(times)}` : name))),
    ];
  }

  op(side, number, item) {
    const { node, index } = item;
    const links = this.report.links(side, number, index);
    return [
      el("p", { class: "over" }, side === "before" ? "TensorFlow op" : "Operator"),
      el("h3", {}, node.op),
      el("p", { class: "path" }, node.name),
      facts([["Source", (node.sources || []).join("\n")], ["Weights", node.bytes ? bytes(node.bytes) : ""]]),
      this.kin(side === "after" ? "Came from" : "Became", side === "after" ? "before" : "after", links.from, node, side),
      this.operands(side, number, node),
      this.results(side, number, item),
      attributes(node),
      this.kin(side === "after" ? "Its constants came from" : "Folded into the constants of", side === "after" ? "before" : "after", links.folded),
      (node.calls || []).length > 0 && el("h4", {}, "Runs"),
      (node.calls || []).length > 0 &&
        el("ul", { class: "refs" }, node.calls.map((name) => el("li", {}, this.callee(side, name)))),
    ];
  }

  callee(side, name) {
    const number = this.report.functions(side).findIndex((each) => each.name === name);
    return number < 0 ? name : el("button", { type: "button", class: "ref", onclick: () => this.report.open(side, number) }, name);
  }

  operands(side, number, node) {
    const rows = (node.operands || []).map((operand) => {
      if (Array.isArray(operand)) return el("li", {}, this.reference(side, number, operand[0], operand[1]));
      const weight = operand.bytes > 1024 ? bytes(operand.bytes) : "";
      const words = [operand.name, operand.value, weight].filter(Boolean).join(", ");
      return el("li", { class: "const" }, el("span", { class: "type" }, operand.type), words ? ` ${words}` : " constant");
    });
    return rows.length ? [el("h4", {}, "Inputs"), el("ol", { class: "refs" }, rows)] : [];
  }

  results(side, number, item) {
    const users = this.report.users(side, number, item.index);
    const types = (item.node.types || []).map((type) => el("li", {}, el("span", { class: "type" }, type)));
    return [
      types.length ? [el("h4", {}, "Results"), el("ol", { class: "refs" }, types)] : [],
      users.length ? [el("h4", {}, "Used by"), el("ul", { class: "refs" }, some(users, 12, (user) => el("li", {}, this.reference(side, number, user))))] : [],
    ].flat();
  }

  reference(side, number, index, result) {
    const node = this.report.node(side, number, index);
    const type = result === undefined || !node.types ? "" : node.types[result] || "";
    return el("button", { type: "button", class: "ref", onclick: () => this.report.show(side, number, index) },
      el("b", {}, node.op), ` ${tail(plain(node.name), 140)}`, type && el("span", { class: "type" }, ` ${type}`));
  }

  kin(title, side, places, node, own) {
    if (!places.length) {
      const names = own === "after" && node && node.names ? node.names : [];
      return names.length ? [el("h4", {}, title), el("ul", { class: "refs" }, names.map((name) => el("li", {}, name)))] : [];
    }
    const rows = some(places, 20, ([number, index]) => el("li", {}, this.reference(side, number, index)));
    return [el("h4", {}, title), el("ul", { class: "refs kin" }, rows)];
  }
}

function some(list, limit, row) {
  const rows = list.slice(0, limit).map(row);
  return list.length > limit ? [...rows, el("li", { class: "dim" }, `and ${count(list.length - limit)} more`)] : rows;
}

function facts(pairs) {
  const known = pairs.filter(([, value]) => value);
  return known.length > 0 && el("dl", { class: "facts" }, known.map(([name, value]) => [el("dt", {}, name), el("dd", {}, ...value.split("\n").map((line) => el("div", {}, line)))]));
}

function attributes(node) {
  const pairs = Object.entries(node.attributes || {});
  return pairs.length ? [el("h4", {}, "Attributes"), facts(pairs)] : [];
}
