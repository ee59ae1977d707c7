// The tree of layers. Ops are grouped by the parts of their names: `block_1/conv/Conv2D` is in `conv` in `block_1`.

const MAX_CHILDREN = 240; // A level with more is split into pieces, so that each can be laid out and read.
const PIECE_SIZE = 60;

class Item {
  constructor(kind, label, index) {
    this.kind = kind; // "op" or "group"
    this.label = label;
    this.index = index; // Of the op, or of the group's first op. Items are sorted by it.
    this.parent = null;
    this.children = [];
    this.edges = new Map(); // Of a group: from child to child, with the number of tensors.
    this.entered = new Set(); // Children with inputs from outside, and children that are used outside.
    this.left = new Set();
    this.ops = 1;
    this.bytes = 0;
    this.expanded = false;
    this.placed = null; // The layout of the inside, if it is current.
  }

  get path() {
    return this.parent && this.parent.parent ? `${this.parent.path}/${this.label}` : this.label;
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
  sumUp(root);
  const top = root.children.filter((child) => child.kind === "group");
  if (top.length === 1) top[0].expanded = true;
  root.expanded = true;
  connect(nodes, leaves);
  return { root, leaves };
}

// Replaces a group with one child by that child, and splits a level with too many children into pieces.
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

function lineage(item) {
  const found = [];
  for (let at = item; at; at = at.parent) found.push(at);
  return found.reverse();
}

// Draws an edge in the innermost group that contains both of its ends; it extends into nested groups.
function connect(nodes, leaves) {
  nodes.forEach((node, index) => {
    const reader = lineage(leaves[index]);
    for (const operand of node.operands || []) {
      if (!Array.isArray(operand) || operand[0] === index || !leaves[operand[0]]) continue;
      const writer = lineage(leaves[operand[0]]);
      let depth = 0;
      while (reader[depth + 1] === writer[depth + 1] && depth + 2 < Math.min(reader.length, writer.length)) depth++;
      const [from, to] = [writer[depth + 1], reader[depth + 1]];
      const edges = reader[depth].edges;
      if (!edges.has(from)) edges.set(from, new Map());
      edges.get(from).set(to, (edges.get(from).get(to) || 0) + 1);
      for (let at = depth + 1; at + 1 < reader.length; at++) reader[at].entered.add(reader[at + 1]);
      for (let at = depth + 1; at + 1 < writer.length; at++) writer[at].left.add(writer[at + 1]);
    }
  });
}
