"use strict";
// Draws what the page's tables only name: layouts on demand, and the text behind each pass.
// Texts enter the page by textContent alone, so none of them is markup.
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);

  function make(tag, text, attributes) {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    for (const name in attributes || {}) node.setAttribute(name, attributes[name]);
    return node;
  }

  // ---- layouts -------------------------------------------------------------------

  // Gives the thread and the slot of the element at `index`: each dimension is split into modes,
  // the outermost first; lists of digits number threads and slots, the most significant first.
  // The first of the threads that hold a replica.
  function place(layout, index) {
    const digits = new Array(layout.modes.length);
    const rest = index.slice();
    for (let m = layout.modes.length - 1; m >= 0; m--) {
      const mode = layout.modes[m];
      digits[m] = rest[mode.dim] % mode.extent;
      rest[mode.dim] = Math.floor(rest[mode.dim] / mode.extent);
    }
    const number = list => list.reduce(
      (n, d) => n * d.extent + (d.mode === null ? 0 : digits[d.mode]), 0);
    return { thread: number(layout.spatial), slot: number(layout.local) };
  }

  // The register (of 32 bits) and its bits that hold a slot; of 3, 5, 6 or 7 bits in two registers.
  function register(slot, bits) {
    const first = slot * bits, last = first + bits - 1;
    const from = Math.floor(first / 32), to = Math.floor(last / 32);
    if (bits > 32) return `registers ${from} to ${to}`;
    return from === to ? `register ${from}, bits ${first % 32} to ${last % 32}`
      : `bit ${first % 32} of register ${from} to bit ${last % 32} of register ${to}`;
  }

  // The byte and bank of an element of a shared tensor.
  function sharedPlace(value, tensor, index) {
    let element = index.reduce((n, x, d) =>
      value.strides ? n + x * value.strides[d] : n * value.shape[d] + x, 0);
    if (value.swizzle) {
      const s = value.swizzle, mask = ((1 << s.bits) - 1) << s.base;
      element ^= (element >> s.shift) & mask;
    }
    const byte = (tensor.offset || 0) + Math.floor(element * value.bits / 8);
    return { byte, bank: Math.floor(byte / 4) % 32 };
  }

  const LIMIT = 16384;

  // The byte, and bit, of a tensor in memory at a number of elements.
  function byteText(elements, bits) {
    const bit = elements * bits;
    return `byte ${Math.floor(bit / 8)}` + (bits % 8 ? `, bit ${bit % 8}` : "");
  }

  // Says where an element lies in the tile of global memory that an op moves: behind the tile's
  // beginning, and in the tensor in the first block and iterations, as far as is known.
  function globalWords(tile, index) {
    const strides = tile.dims.map(d => tile.strides[d]);
    if (strides.includes(null)) return "";
    const behind = index.reduce((n, x, i) => n + x * strides[i], 0);
    const known = !tile.first.includes(null) && !tile.strides.includes(null);
    const start = known ? tile.first.reduce((n, x, d) => n + x * tile.strides[d], 0) : 0;
    return `${byteText(behind, tile.bits)} behind the tile's first, [${tile.offsets.join(", ")}]` +
      (known ? `; ${byteText(start + behind, tile.bits)} in the first block and iteration` : "");
  }

  // Says the byte of the block's shared memory, and the bank.
  function sharedWords(program, tile, index) {
    const value = program.values.find(v => v.kind === "shared" && v.name === tile.memory);
    const tensor = program.shared.tensors.find(t => t.name === tile.memory);
    if (!value || !tensor || tile.first.includes(null)) return "";
    const at = tile.first.slice();
    index.forEach((x, i) => { at[tile.dims[i]] += x; });
    const { byte, bank } = sharedPlace(value, tensor, at);
    return `byte ${byte} of shared memory, bank ${bank}, in the first iteration`;
  }

  // Says where an element that loads and stores move lies in memory.
  function memoryWords(program, value, index) {
    return (value.tiles || []).map(tile => {
      const words = tile.kind === "global" ? globalWords(tile, index)
        : sharedWords(program, tile, index);
      return words && `; line ${tile.line} ${tile.mode} %${tile.memory}: ${words}`;
    }).join("");
  }

  // The element of a layout that this thread holds in this slot, or null.
  function find(layout, thread, slot) {
    const index = new Array(layout.shape.length).fill(0);
    for (let d = 0; d >= 0;) {
      const at = place(layout, index);
      if (at.thread === thread && at.slot === slot) return index;
      for (d = index.length - 1; d >= 0 && ++index[d] === layout.shape[d]; d--) index[d] = 0;
    }
    return null;
  }

  // A view has the bits of another tensor: the element there that has the first of these.
  function viewWords(program, value, at) {
    const source = value.view_of === undefined ? null : program.values[value.view_of];
    if (!source || source.layout === null) return "";
    const bit = at.slot * value.bits;
    const index = find(data.layouts[source.layout], at.thread, Math.floor(bit / source.bits));
    return index ? `; bit ${bit % source.bits} of %${source.name}[${index.join(", ")}]` +
      memoryWords(program, source, index) : "";
  }

  function describe(program, value, layout, index) {
    const at = place(layout, index);
    return `[${index.join(", ")}]: thread ${at.thread} (warp ${Math.floor(at.thread / 32)}, lane ` +
      `${at.thread % 32}), slot ${at.slot}, ${register(at.slot, value.bits)}` +
      memoryWords(program, value, index) + viewWords(program, value, at);
  }

  // Fills a table with an element a cell, the last two dimensions; the others are 0.
  function drawGrid(shape, cell, choose) {
    const table = make("table", undefined, { class: "grid", role: "grid" });
    const rows = shape.length > 1 ? shape[shape.length - 2] : 1;
    const columns = shape[shape.length - 1];
    for (let r = 0; r < rows && r * columns < LIMIT; r++) {
      const row = table.insertRow();
      for (let c = 0; c < columns && c < LIMIT; c++) {
        const index = new Array(shape.length).fill(0);
        index[shape.length - 1] = c;
        if (shape.length > 1) index[shape.length - 2] = r;
        const td = row.insertCell();
        td.textContent = cell(index);
        td.tabIndex = r + c ? -1 : 0;
        td.dataset.index = index.join(",");
        td.addEventListener("mouseenter", () => choose(td, index));
        td.addEventListener("focus", () => choose(td, index));
        td.addEventListener("click", () => td.focus());
      }
    }
    table.addEventListener("keydown", walkGrid);
    return table;
  }

  function walkGrid(event) {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const step = steps[event.key], cell = event.target.closest("td");
    if (!step || !cell) return;
    const row = cell.parentNode.parentNode.rows[cell.parentNode.rowIndex + step[0]];
    const next = row && row.cells[cell.cellIndex + step[1]];
    if (next) next.focus();
    event.preventDefault();
  }

  // Marks where the fragments of an instruction begin, in the last two dimensions.
  function markFragments(table, fragment) {
    for (const row of table.rows)
      for (const td of row.cells) {
        td.classList.toggle("fragment-top", row.rowIndex % fragment.rows === 0);
        td.classList.toggle("fragment-left", td.cellIndex % fragment.columns === 0);
      }
  }

  // Says which elements a grid shows, where it shows not all.
  function shownPart(shape) {
    const outer = shape.slice(0, -2).some(extent => extent > 1);
    const inner = shape.slice(-2).reduce((n, extent) => n * extent, 1);
    return (outer ? "; the last two dimensions, where the others are 0" : "") +
      (inner > LIMIT ? `; the first rows, ${LIMIT} elements` : "");
  }

  // Draws a value: `cell` gives the text of an element's cell, `words` the line about the element
  // that is chosen, and cells of one `key(text)` are marked together.
  function draw(value, shape, legend, cell, words, key) {
    const box = document.getElementById("drawing");
    const status = make("p", "", { id: "place", role: "status" });
    const name = value.name ? "%" + value.name : "value";
    const groups = new Map();
    let chosen = null;
    const table = drawGrid(shape, cell, (td, index) => {
      status.textContent = words(index);
      if (chosen) {
        chosen.classList.remove("chosen");
        for (const other of groups.get(key(chosen.textContent)))
          other.classList.remove("same-thread");
      }
      chosen = td;
      td.classList.add("chosen");
      for (const other of groups.get(key(td.textContent))) other.classList.add("same-thread");
    });
    for (const td of table.querySelectorAll("td")) {
      const name = key(td.textContent);
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(td);
    }
    const fragment = value.fragment;
    if (fragment) markFragments(table, fragment);
    const frame = make("div", undefined, { class: "scroll" });
    frame.append(table);
    box.replaceChildren(make("h3", `${name} of line ${value.line}: ${value.type}`),
      make("p", legend + shownPart(shape) + (fragment
        ? `; thick lines: fragments of ${fragment.instruction}, ${fragment.rows} x ${fragment.columns}`
        : ""), { class: "faint" }), status, frame);
    box.scrollIntoView({ block: "start" });
    table.rows[0].cells[0].focus({ preventScroll: true });
  }

  function drawLayout(program, value) {
    const layout = data.layouts[value.layout];
    const thread = text => text.split(":")[0];
    draw(value, layout.shape, "thread:slot of each element", index => {
      const at = place(layout, index);
      return `${at.thread}:${at.slot}`;
    }, index => describe(program, value, layout, index), thread);
  }

  function drawShared(program, value) {
    const tensor = program.shared.tensors.find(
      t => t.name === value.name && t.line === value.line) || {};
    const bank = text => text.split(":")[1];
    draw(value, value.shape, "byte:bank of each element", index => {
      const at = sharedPlace(value, tensor, index);
      return `${at.byte}:${at.bank}`;
    }, index => {
      const at = sharedPlace(value, tensor, index);
      return `[${index.join(", ")}]: byte ${at.byte}, bank ${at.bank}`;
    }, bank);
  }

  for (const button of document.querySelectorAll("button[data-value]"))
    button.addEventListener("click", () => {
      const program = data.programs[button.dataset.program];
      const value = program.values[button.dataset.value];
      if (value.layout === null) drawShared(program, value);
      else drawLayout(program, value);
    });

  // ---- passes --------------------------------------------------------------------

  // Applies a difference of `diff -u` to the lines of a text.
  function applyDifference(lines, diff) {
    const result = [];
    let at = 0;
    for (const line of diff.split("\n")) {
      const hunk = /^@@ -(\d+)(?:,(\d+))? /.exec(line);
      if (hunk) {
        const start = Number(hunk[1]) - (hunk[2] === "0" ? 0 : 1);
        while (at < start) result.push(lines[at++]);
      } else if (line[0] === "+") {
        result.push(line.slice(1));
      } else if (line[0] === "-") {
        at++;
      } else if (line[0] === " ") {
        result.push(lines[at++]);
      }
    }
    while (at < lines.length) result.push(lines[at++]);
    return result;
  }

  // The text behind the first `count` passes.
  function textAfter(count) {
    let lines = data.input.split("\n");
    for (const pass of data.passes.slice(0, count))
      if (pass.changed) lines = applyDifference(lines, pass.diff);
    return lines;
  }

  function showPass(slider, title, pre) {
    const count = Number(slider.value);
    const pass = count ? data.passes[count - 1] : null;
    title.textContent = pass ? `after ${pass.pass}: ${(1e3 * pass.seconds).toFixed(3)} ms` +
      (pass.changed ? "" : ", no change") : "the program as it was read";
    const added = new Set();
    if (pass && pass.changed)
      for (const line of pass.diff.split("\n")) if (line[0] === "+") added.add(line.slice(1));
    pre.replaceChildren(...textAfter(count).map(line =>
      make("span", line, { class: added.has(line) ? "plus" : "same" })));
  }

  function makeSlider() {
    const box = document.getElementById("slider");
    const slider = make("input", undefined, { type: "range", min: 0, max: data.passes.length,
      value: 0, "aria-label": "how many passes have run" });
    const title = make("p", ""), pre = make("pre");
    pre.style.maxHeight = "30rem";
    slider.addEventListener("input", () => showPass(slider, title, pre));
    box.append(slider, title, pre);
    showPass(slider, title, pre);
  }

  // ---- keyboard ------------------------------------------------------------------

  function go(step) {
    const rows = [...document.querySelectorAll("tr.noted")];
    const now = rows.findIndex(row => "#" + row.id === location.hash);
    const next = rows[now < 0 ? (step > 0 ? 0 : rows.length - 1)
      : (now + step + rows.length) % rows.length];
    if (next) location.hash = next.id;
  }

  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input")) return;
    if (event.key === "n") go(1);
    if (event.key === "p") go(-1);
  });

  // Paper shows what is folded.
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });

  document.documentElement.classList.add("js");
  makeSlider();
})();
