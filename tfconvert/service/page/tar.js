// A folder as one uncompressed archive. Files are referenced, and read only when the archive is sent.

const BLOCK = 512;
const MAX_NAME = 100; // Bytes of a name in a plain header. A longer one needs an extended header before it.
const ENCODER = new TextEncoder();

function header(name, size, kind) {
  const block = new Uint8Array(BLOCK);
  const put = (text, at) => block.set(typeof text === "string" ? ENCODER.encode(text) : text, at);
  const octal = (number, digits) => `${number.toString(8).padStart(digits, "0")}\0`;
  put(name, 0);
  put(octal(0o644, 7), 100);
  put(octal(0, 7), 108);
  put(octal(0, 7), 116);
  put(octal(size, 11), 124);
  put(octal(0, 11), 136);
  put("        ", 148);
  put(kind, 156);
  put("ustar\u000000", 257);
  put(`${block.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

const padding = (size) => new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK);

// The length of a record includes its own digits.
function record(key, value) {
  const rest = ENCODER.encode(` ${key}=${value}\n`);
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return [ENCODER.encode(String(length)), rest];
}

function parts({ path, file }) {
  const name = ENCODER.encode(path);
  const body = [file, padding(file.size)];
  if (name.length <= MAX_NAME && file.size < 8 ** 11) return [header(name, file.size, "0"), ...body];
  const records = [...record("path", path), ...(file.size < 8 ** 11 ? [] : record("size", file.size))];
  const size = records.reduce((sum, part) => sum + part.length, 0);
  const short = name.slice(0, MAX_NAME);
  return [header("pax", size, "x"), ...records, padding(size), header(short, file.size % 8 ** 11, "0"), ...body];
}

// Returns an archive of files `{path, file}`. The same files give the same bytes.
export function pack(files) {
  const sorted = [...files].sort((one, other) => (one.path < other.path ? -1 : 1));
  return new Blob([...sorted.flatMap(parts), new Uint8Array(2 * BLOCK)], { type: "application/x-tar" });
}

// Yields the files of a dropped entry, including those in folders.
export async function* walk(entry, folder = "") {
  const path = folder + entry.name;
  if (entry.isFile) {
    yield { path, file: await new Promise((resolve, reject) => entry.file(resolve, reject)) };
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    // A reader returns a part of the entries at a time, and none after the last.
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    for (const each of some) yield* walk(each, `${path}/`);
  }
}
