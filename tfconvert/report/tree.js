// The tree of layers. Ops are grouped by the parts of their names: `block_1/conv/Conv2D` is in `conv` in `block_1`.
// Blocks that repeat are found by what is in them, and are in one group: `layer_0 – layer_47`, 48 times.

const MAX_CHILDREN = 240; // A level with more is split into pieces, so that each can be laid out and read.
const PIECE_SIZE = 60;
const MIN_NODES_TO_FOLD = 120; // Smaller graphs show every block.
const MIN_BLOCK_OPS = 4;
const MIN_TIMES = 3;
const MAX_PERIOD = 400;
const MOST = 0.7; // A group with a larger share of all ops is not drawn.
const MAX_OPEN = 160; // A graph of at most so many ops is open at the start; of a larger one the upper levels.
const FIRST_OPEN = 40;

class Item {
  constructor(kind, label, index) {
    this.kind = kind; // "op" or "group"
    this.label = label;
    this.index = index; // Of the op, or of the group's first op. Items are sorted by it.
    this.parent = null;
    this.children = [];
    this.edges = new Map(); // Of a group: from child to child, with the number of tensors and their type.
    this.entered = new Set(); // Children with inputs from outside, and children that are used outside.
    this.left = new Set();
    this.ops = 1;
    this.bytes = 0;
    this.times = 0; // Of a group of blocks that are the same: how many there are.
    this.expanded = false;
    this.placed = null; // The layout of the inside, if it is current.
  }

  get path() {
    return this.parent && this.parent.parent ? `${this.parent.path}/${this.label}` : this.label;
  }

  get isPort() {
    return this.kind === "op" && (this.node.op === "Input" || this.node.op === "Output");
  }
}

function buildTree(nodes) {
  const root = new Item("group", "", 0);
  const groups = new Map();
  const leaves = nodes.map((node, index) => {
    const scope = node.scope || node.name;
    const parts = node.op === "Input" || node.op === "Output" ? [""] : scope.split("/").slice(0, 40);
    let group = root;
    let path = "";
    for (const part of parts.slice(0, -1)) {
      path += `/${part}`;
      if (!groups.has(path)) {
        const next = new Item("group", part, index);
        groups.set(path, next);
        group.children.push(next);
      }
      group = groups.get(path);
    }
    const leaf = new Item("op", node.op, index);
    leaf.node = node;
    leaf.bytes = node.bytes || 0;
    group.children.push(leaf);
    return leaf;
  });
  tidy(root);
  unwrap(root);
  if (nodes.length >= MIN_NODES_TO_FOLD) foldRepeats(root, new Signatures());
  split(root);
  sumUp(root);
  openFirst(root);
  connect(nodes, leaves);
  return { root, leaves };
}

// Replaces a group with one child by that child.
function tidy(group) {
  group.children = group.children.map((child) => {
    if (child.kind === "op") return child;
    tidy(child);
    if (child.children.length > 1) return child;
    const only = child.children[0];
    if (only.kind === "group") only.label = `${child.label}/${only.label}`;
    return only;
  });
  group.children.sort((one, other) => one.index - other.index);
}

// Takes the children out of a group that contains nearly all ops: a box around everything says nothing.
function unwrap(root) {
  for (;;) {
    const all = leavesOf(root.children).filter((leaf) => !leaf.isPort).length;
    const outer = root.children.find((child) => child.kind === "group" && child.children.length > 1 && leavesOf([child]).length > MOST * all);
    if (!outer) return;
    root.children = [...root.children.filter((child) => child !== outer), ...outer.children].sort((one, other) => one.index - other.index);
  }
}

// Numbers of items, equal for those with the same ops of the same types in the same order.
class Signatures {
  constructor() {
    this.numbers = new Map();
    this.known = new Map();
  }

  of(item) {
    if (!this.known.has(item)) {
      const text = item.kind === "op" ? `${item.node.op} ${(item.node.types || []).join()}` : `(${item.children.map((child) => this.of(child)).join()})`;
      if (!this.numbers.has(text)) this.numbers.set(text, this.numbers.size);
      this.known.set(item, this.numbers.get(text));
    }
    return this.known.get(item);
  }
}

function leavesOf(items, found = []) {
  for (const item of items) item.kind === "op" ? found.push(item) : leavesOf(item.children, found);
  return found;
}

// Puts blocks that repeat in the children of a group, and of those inside, into groups of their own.
function foldRepeats(group, signatures) {
  for (const child of group.children) if (child.kind === "group") foldRepeats(child, signatures);
  const ports = group.children.filter((child) => child.isPort);
  const items = group.children.filter((child) => !child.isPort);
  const numbers = items.map((item) => signatures.of(item));
  const sizes = items.map((item) => leavesOf([item]).length);
  const folded = [];
  const pending = [[0, items.length]];
  while (pending.length) {
    const [start, end] = pending.pop();
    const run = bestRun(numbers, sizes, start, end);
    if (!run) {
      folded.push(...items.slice(start, end));
      continue;
    }
    const first = aligned(items, run);
    pending.push([start, first], [first + run.period * run.times, end]);
    folded.push(repeated(items.slice(first, first + run.period * run.times), run));
  }
  if (folded.length === 1 && !ports.length && folded[0].times) {
    [group.times, group.children] = [folded[0].times, folded[0].children]; // The group itself is the repetition.
  } else group.children = [...ports, ...folded].sort((one, other) => one.index - other.index);
}

// Returns the repetition that contains most ops: where it starts, the number of items of a block, and of blocks.
function bestRun(numbers, sizes, start, end) {
  let best = null;
  for (let period = 1; period <= Math.min(MAX_PERIOD, Math.floor((end - start) / MIN_TIMES)); period++) {
    let [from, ops] = [start, 0];
    for (let at = start; at <= end - period; at++) {
      if (at < end - period && numbers[at] === numbers[at + period]) {
        ops += sizes[at];
        continue;
      }
      const times = Math.floor((at - from) / period) + 1;
      if (times >= MIN_TIMES && ops / (at - from) * period >= MIN_BLOCK_OPS && ops > (best ? best.ops : 0))
        best = { start: from, period, times, ops, slack: (at - from) % period };
      [from, ops] = [at + 1, 0];
    }
  }
  return best;
}

// The beginnings of a name that end with a number: `model/layer_0_norm_1` gives `model/layer_0` too.
function beginnings(name) {
  return [...name.matchAll(/\d+/g)].slice(0, 6).map((match) => name.slice(0, match.index + match[0].length));
}

// The beginning that most ops of a block share, and those of the next block don't; with the number of these ops.
function nameOf(block, next) {
  const counts = new Map();
  const others = new Set(leavesOf(next).flatMap((leaf) => beginnings(leaf.node.scope || leaf.node.name)));
  for (const leaf of leavesOf(block)) {
    for (const text of beginnings(leaf.node.scope || leaf.node.name)) if (!others.has(text)) counts.set(text, (counts.get(text) || 0) + 1);
  }
  return [...counts].reduce((best, entry) => (entry[1] > best[1] ? entry : best), ["", 0]);
}

// Moves the start of a repetition to where its blocks are those of the names, as far as it can be moved.
function aligned(items, run) {
  const block = (number) => items.slice(number, number + run.period);
  let [best, most] = [run.start, -1];
  for (let shift = 0; shift <= run.slack; shift++) {
    const first = run.start + shift;
    const shared = nameOf(block(first), block(first + run.period))[1] + nameOf(block(first + run.period), block(first))[1];
    if (shared > most) [best, most] = [first, shared];
  }
  return best;
}

function repeated(items, run) {
  const blocks = [];
  for (let start = 0; start < items.length; start += run.period) {
    const members = items.slice(start, start + run.period);
    const block = members.length === 1 && members[0].kind === "group" ? members[0] : new Item("group", "", members[0].index);
    if (block !== members[0]) block.children = members;
    blocks.push(block);
  }
  blocks.forEach((block, number) => {
    const [name, ops] = nameOf(block.children, (blocks[number + 1] || blocks[number - 1]).children);
    const isNamed = 2 * ops >= leavesOf(block.children).length;
    if (isNamed || !block.label) block.label = isNamed ? name.split("/").pop() : `block ${number + 1}`;
  });
  const all = new Item("group", `${blocks[0].label} – ${blocks[blocks.length - 1].label}`, blocks[0].index);
  [all.children, all.times] = [blocks, blocks.length];
  return all;
}

// Splits a level with too many children into pieces.
function split(group) {
  for (const child of group.children) if (child.kind === "group") split(child);
  while (group.children.length > MAX_CHILDREN) {
    const pieces = [];
    for (let start = 0; start < group.children.length; start += PIECE_SIZE) {
      const members = group.children.slice(start, start + PIECE_SIZE);
      const piece = new Item("group", "", members[0].index);
      piece.children = members;
      pieces.push(piece);
    }
    group.children = pieces;
  }
}

function sumUp(group) {
  group.ops = group.bytes = 0;
  for (const child of group.children) {
    child.parent = group;
    if (child.kind === "group") sumUp(child);
    group.ops += child.ops;
    group.bytes += child.bytes;
  }
  for (const child of group.children) {
    if (child.kind === "group" && !child.label) child.label = `ops ${child.index + 1} – ${lastIndex(child) + 1}`;
  }
}

function lastIndex(item) {
  while (item.children.length) item = item.children[item.children.length - 1];
  return item.index;
}

// Opens groups from the top as long as what is shown can be read.
function openFirst(root) {
  const isSmall = root.ops <= MAX_OPEN;
  let shown = root.children.length;
  root.expanded = true;
  const waiting = root.children.filter((child) => child.kind === "group");
  while (waiting.length) {
    const group = waiting.shift();
    if (!isSmall && (group.times || shown >= FIRST_OPEN || shown + group.children.length > MAX_OPEN)) continue;
    group.expanded = true;
    shown += group.children.length;
    waiting.push(...group.children.filter((child) => child.kind === "group"));
  }
}

function lineage(item) {
  const found = [];
  for (let at = item; at; at = at.parent) found.push(at);
  return found.reverse();
}

// Draws an edge in the innermost group that contains both of its ends; it extends into nested groups.
function connect(nodes, leaves) {
  const lineages = leaves.map(lineage);
  nodes.forEach((node, index) => {
    const reader = lineages[index];
    for (const operand of node.operands || []) {
      if (!Array.isArray(operand) || operand[0] === index || !leaves[operand[0]]) continue;
      const writer = lineages[operand[0]];
      let depth = 0;
      while (reader[depth + 1] === writer[depth + 1] && depth + 2 < Math.min(reader.length, writer.length)) depth++;
      const [from, to] = [writer[depth + 1], reader[depth + 1]];
      const edges = reader[depth].edges;
      if (!edges.has(from)) edges.set(from, new Map());
      const known = edges.get(from).get(to);
      const type = (nodes[operand[0]].types || [])[operand[1]] || "";
      if (!known) edges.get(from).set(to, { tensors: 1, type });
      else {
        known.tensors++;
        if (known.type !== type) known.type = "";
      }
      for (let at = depth + 1; at + 1 < reader.length; at++) reader[at].entered.add(reader[at + 1]);
      for (let at = depth + 1; at + 1 < writer.length; at++) writer[at].left.add(writer[at + 1]);
    }
  });
}
