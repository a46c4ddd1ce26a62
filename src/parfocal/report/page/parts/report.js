"use strict";
(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const root = document.documentElement;
  const all = (selector, from = document) => Array.from(from.querySelectorAll(selector));

  // ---- elements: text only ever becomes text ----
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    for (const child of children.flat(Infinity)) {
      if (child !== null && child !== undefined) element.append(child);
    }
    return element;
  };
  const said = ([en, zh]) => en === zh ? [document.createTextNode(en)]
    : [make("span", { lang: "en" }, en), make("span", { lang: "zh" }, zh)];
  const both = (text) => [text, facts.labels[text] ?? text];
  const label = (text) => said(both(text));
  const word = (text) => root.dataset.language === "zh" ? both(text)[1] : text;
  const spoken = (pair) => pair[root.dataset.language === "zh" ? 1 : 0];

  // ---- numbers ----
  const number = (value) => typeof value === "string" ? { inf: Infinity, "-inf": -Infinity, nan: NaN }[value] : value;
  const short = (value) => {
    const n = number(value);
    if (n === null || n === undefined) return "–";
    if (!Number.isFinite(n)) return String(n).replace("Infinity", "∞");
    if (n === 0) return "0";
    return Math.abs(n) >= 1e5 || Math.abs(n) < 1e-3 ? n.toExponential(2) : String(Number(n.toPrecision(4)));
  };
  const times = (value) => {
    const n = number(value);
    if (n === null || n === undefined) return "–";
    if (!Number.isFinite(n)) return "∞";
    const text = n < 1e3 ? String(Number(n.toPrecision(3))) : n < 1e6 ? Math.round(n).toLocaleString("en")
      : n < 1e9 ? `${(n / 1e6).toFixed(1)}M` : n.toExponential(0).replace("+", "");
    return `${text}×`;
  };
  const pill = (value) => {
    const n = number(value);
    const bounds = [facts.limit / 2, facts.limit, 25 * facts.limit, 2500 * facts.limit];
    const level = n === null || n === undefined ? 0 : 1 + bounds.filter((bound) => n > bound).length;
    return make("span", { class: `pill level${level}` }, times(value));
  };

  // ---- language ----
  const speak = (language) => {
    root.dataset.language = language;
    root.lang = language === "zh" ? "zh-Hans" : "en";
    for (const button of all(".languages button")) {
      button.setAttribute("aria-pressed", String(button.dataset.language === language));
    }
    for (const element of all("[data-say]")) element.textContent = word(element.dataset.say);
    for (const element of all("[data-say-label]")) {
      const text = word(element.dataset.sayLabel);
      element.setAttribute("aria-label", text);
      if (element.hasAttribute("placeholder")) element.setAttribute("placeholder", text);
    }
    redraw();
    count();
  };
  for (const button of all(".languages button")) {
    button.addEventListener("click", () => speak(button.dataset.language));
  }

  // ---- copying ----
  document.addEventListener("click", async (event) => {
    const button = event.target.closest(".copy");
    if (!button) return;
    const source = button.parentElement.querySelector("pre");
    let answer = "Copied";
    try {
      await navigator.clipboard.writeText(source.innerText);
    } catch {
      getSelection().selectAllChildren(source);
      answer = document.execCommand("copy") ? "Copied" : "Copy by hand: the text is selected";
    }
    button.replaceChildren(...label(answer));
    setTimeout(() => button.replaceChildren(...label("Copy")), 1600);
  });

  // ---- rows: filters, folds, keys ----
  const rows = all(".row");
  const parents = rows.map((row) => row.dataset.parent === undefined ? -1 : Number(row.dataset.parent));
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const form = document.querySelector(".filters");
  const folded = new Set();

  const count = () => {
    if (!form) return;
    const shown = rows.filter((row) => !row.hidden).length;
    form.querySelector("output").textContent = `${shown.toLocaleString("en")} / ${rows.length.toLocaleString("en")} ${word("rows")}`;
    document.querySelector(".nothing").hidden = shown > 0;
  };
  const filter = () => {
    const text = form.elements.text.value.trim().toLowerCase();
    const kind = form.elements.kind.value;
    const phase = form.elements.phase ? form.elements.phase.value : "";
    const divergent = form.elements.divergent.checked;
    const active = Boolean(text || kind || phase || divergent);
    const shown = rows.map((row, index) =>
      (!text || texts[index].includes(text)) && (!kind || row.dataset.kind === kind)
      && (!phase || (row.dataset.phases || "").split(" ").includes(phase))
      && (!divergent || row.classList.contains("own") || row.classList.contains("inherited")));
    if (active) {  // whatever is shown keeps the modules around it
      for (let index = rows.length - 1; index >= 0; index--) {
        if (shown[index] && parents[index] >= 0) shown[parents[index]] = true;
      }
    }
    const inFold = [];
    rows.forEach((row, index) => {
      const parent = parents[index];
      inFold[index] = parent >= 0 && (inFold[parent] || folded.has(parent));
      row.hidden = !shown[index] || (!active && inFold[index]);
    });
    count();
  };
  const fold = (index, wanted) => {
    if (!rows[index].classList.contains("around")) return;
    if (wanted) folded.add(index); else folded.delete(index);
    rows[index].classList.toggle("folded", wanted);
    filter();
  };
  if (form) {
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
  }
  const lineOf = (index) => rows[index].firstElementChild;
  const focus = (index) => {
    for (const line of all('.row > .line[tabindex="0"]')) line.tabIndex = -1;
    lineOf(index).tabIndex = 0;
    lineOf(index).focus();
  };
  const step = (index, by) => {
    for (let next = index + by; next >= 0 && next < rows.length; next += by) {
      if (!rows[next].hidden) return focus(next);
    }
  };
  const tree = document.querySelector(".tree");
  if (tree) {
    tree.addEventListener("click", (event) => {
      const line = event.target.closest(".row > .line");
      if (!line) return;
      const index = rows.indexOf(line.parentElement);
      if (event.target.closest(".fold")) fold(index, !folded.has(index));
      else if (getSelection().isCollapsed) toggle(index);
    });
    tree.addEventListener("keydown", (event) => {
      const line = event.target.closest(".row > .line");
      if (!line || line !== event.target) return;
      const index = rows.indexOf(line.parentElement);
      const acts = {
        Enter: () => toggle(index), " ": () => toggle(index),
        ArrowDown: () => step(index, 1), ArrowUp: () => step(index, -1),
        Home: () => step(-1, 1), End: () => step(rows.length, -1),
        ArrowLeft: () => rows[index].classList.contains("around") && !folded.has(index) ? fold(index, true) : parents[index] >= 0 && focus(parents[index]),
        ArrowRight: () => fold(index, false),
        Escape: () => toggle(index, false),
      };
      if (!acts[event.key]) return;
      event.preventDefault();
      acts[event.key]();
    });
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-row]");
    if (!link) return;
    event.preventDefault();
    const index = Number(link.dataset.row);
    for (const control of [form.elements.text, form.elements.kind, form.elements.phase]) if (control) control.value = "";
    form.elements.divergent.checked = false;
    for (let at = parents[index]; at >= 0; at = parents[at]) { folded.delete(at); rows[at].classList.remove("folded"); }
    filter();
    toggle(index, true);
    focus(index);
    lineOf(index).scrollIntoView({ block: "start" });
  });

  // ---- details of a row ----
  const toggle = (index, wanted) => {
    const row = rows[index];
    const open = row.querySelector(".details");
    if (wanted === undefined) wanted = !open;
    lineOf(index).setAttribute("aria-expanded", String(wanted));
    if (!wanted && open) open.remove();
    if (wanted && !open) row.append(details(facts.rows[index]));
  };
  const pairs = (entries) => make("dl", { class: "facts" }, entries.filter((entry) => entry && entry[1] !== null && entry[1] !== "")
    .map(([name, value]) => [make("dt", {}, ...label(name)), make("dd", {}, ...(Array.isArray(value) ? value : [value]))]));
  const figures = (entries) => make("dl", { class: "figures" }, entries.filter((entry) => entry[1] !== null)
    .map(([name, value]) => make("div", {}, make("dt", {}, ...label(name)), make("dd", {}, ...(Array.isArray(value) ? value : [value])))));
  const details = (row) => {
    const [ours, theirs] = row.sides;
    const box = make("div", { class: "details" });
    box.append(make("div", { class: "columns" }, settings(ours, theirs), make("div", {},
      make("h4", {}, ...label("metrics")),
      pairs([
        ...["reference", "port"].map((name, side) => [name, row.sides[side] && row.sides[side].at ? [make("span", { class: "at" }, row.sides[side].at)] : null]),
        ["paired by", row.why ? said(row.why) : null],
        ...["forward", "backward"].map((name, side) => row.scores[side] === null ? null : [name, [
          pill(row.scores[side]), " ",
          ...(row.errors[side] ? [...label("relative error"), ` ${short(row.errors[side][0])}`, ...label(", "), ...label("relative floor"), ` ${short(row.errors[side][1])}`] : []),
        ]]),
      ]))));
    for (const place of row.differences) box.append(difference(facts.differences[place]));
    return box;
  };
  const settings = (ours, theirs) => {
    const [a, b] = [ours, theirs].map((side) => side ? facts.settings[side.settings] : {});
    const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
    const body = names.map((name) => make("tr", { class: ours && theirs && a[name] !== b[name] ? "differs" : "" },
      make("th", { scope: "row" }, name), make("td", {}, a[name] ?? "–"), make("td", {}, b[name] ?? "–")));
    const kinds = [ours, theirs].map((side) => side ? side.kind : "");
    const head = make("thead", {}, make("tr", {}, make("th", {}),
      make("th", {}, ...label("reference"), ` ${kinds[0]}`), make("th", {}, ...label("port"), ` ${kinds[1]}`)));
    return make("div", {}, make("h4", {}, ...label("settings")),
      names.length ? make("table", { class: "settings" }, head, make("tbody", {}, body)) : make("p", { class: "quiet" }, ...label("no settings")));
  };
  const difference = (each) => {
    const box = make("div", { class: each.inherited ? "difference pale" : "difference" });
    box.append(make("div", {},
      make("span", { class: "phase" }, ...said(each.phase), each.step ? ` · ${each.step}` : ""), " ", ...said(each.what), " ", pill(each.score),
      ...(each.inherited ? [" ", make("span", { class: "quiet" }, ...label("follows from another difference"))] : [])));
    if (each.message[0]) box.append(make("p", {}, ...said(each.message)));
    if (each.cause) box.append(cause(each.cause));
    if (each.error) {
      const error = each.error;
      const place = error.index && error.index.length ? [" ", ...label("at"), ` [${error.index.join(", ")}]`] : [];
      box.append(figures([
        ["tensor", `${error.dtype} ${error.shape.join("×")}`],
        ["largest difference", [short(error.largest), ...place]],
        ["the two values there", error.values[0] === null ? null : [`${error.values[0]} / ${error.values[1]}`]],
        ["root mean square", short(error.rms)], ["relative (L2)", short(error.relative)], ["cosine", short(error.cosine)],
        ["noise (rms)", short(each.noise)],
        ["differing elements", `${error.differing.toLocaleString("en")} / ${error.size.toLocaleString("en")}`],
        ["not finite on one side only", error["not finite"] ? String(error["not finite"]) : null],
      ]));
      box.append(pictures(error));
    }
    return box;
  };
  const cause = (each) => {
    const box = make("dl", { class: "facts" });
    box.append(make("dt", {}, ...said(each.label)), make("dd", {}, make("code", { class: "code" }, each.code), " ", ...said(each.message)),
      make("dt", {}, ...said(each.proof[0])), make("dd", {}, ...said(each.proof[1])));
    if (each.fix[0]) {
      box.append(make("dt", {}, ...label("fix")), make("dd", { class: "fix" }, make("pre", { tabindex: "0" }, ...said(each.fix)),
        make("button", { type: "button", class: "copy" }, ...label("Copy"))));
    }
    for (const other of each.alternatives) {
      box.append(make("dt", {}, ...label("also possible")), make("dd", {}, make("code", { class: "code" }, other.code), " ", ...said(other.message)));
    }
    return box;
  };
  const axes = (list) => `${word(list.length > 1 ? "axes" : "axis")} ${list.join(", ")}`;
  const pictures = (error) => {
    const box = make("div", { class: "pictures" });
    if (error.histogram) {
      const target = make("div", { class: "plot", "data-plot": "histogram" });
      box.append(make("figure", {}, make("figcaption", {}, ...label("Histogram of the difference")), target));
      plot(target, () => histogram(error.histogram));
    }
    for (const map of error.maps) {
      const target = make("div", { class: "plot", "data-plot": "map" });
      box.append(make("figure", {}, make("figcaption", {}, ...label("Where it sits")), target));
      plot(target, () => heat(map));
    }
    return box;
  };

  // ---- plots, by the library that is in the file ----
  let loading = null;
  const library = () => loading ??= (async () => {
    const packed = document.getElementById("library");
    if (!packed || typeof DecompressionStream === "undefined") throw new Error("too old");
    const bytes = Uint8Array.from(atob(packed.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const code = await new Response(stream).text();
    document.head.append(make("script", {}, code));
    return window.Plotly;
  })();
  const drawn = new Map();  // element -> what makes its figure
  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const axis = (title, extra = {}) => ({
    title: { text: title, font: { size: 11 } }, gridcolor: colour("line"), zerolinecolor: colour("line"), linecolor: colour("line"),
    automargin: true, tickfont: { size: 10.5 }, ...extra,
  });
  const layout = (extra) => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: colour("text"), color: colour("quiet"), size: 11.5 },
    margin: { l: 54, r: 12, t: 10, b: 40 }, legend: { orientation: "h", y: 1.14, x: 0, font: { size: 11 } },
    hoverlabel: { font: { family: colour("mono"), size: 11.5 } }, height: 250, ...extra,
  });
  // A log scale that shows two powers of ten at least, so that it has numbers beside it.
  const log = (title, values) => {
    const powers = values.filter((value) => value > 0).map(Math.log10);
    if (!powers.length) return axis(title, { type: "log" });
    let low = Math.min(...powers), high = Math.max(...powers);
    const missing = Math.max(0, 2 - (high - low)) / 2 + 0.08 * (high - low);
    low -= missing, high += missing;
    return axis(title, { type: "log", exponentformat: "power", dtick: high - low > 5 ? 2 : 1, range: [low, high] });
  };
  const counted = (length) => ({ range: [-0.5, length - 0.5], tickformat: "d", ...(length < 12 ? { dtick: 1 } : {}) });
  const APART = 1e6;  // beyond it two tensors have another shape, or nothing in common: no point of a line
  const positive = (value) => { const n = number(value); return n > 0 && n < APART ? n : null; };

  const MANY = 600;  // points
  const along = (direction) => {
    const { paths, carried } = facts.depth;
    const x = paths.map((_, index) => index);
    const measured = facts.depth[direction];
    const own = measured.map((each) => each && positive(each[0]));
    const floor = measured.map((each) => each && positive(each[1]));
    const scores = facts.depth.rows.map((place) => number(facts.rows[place].scores[direction === "forward" ? 0 : 1]));
    const data = [];
    if (direction === "forward" && carried.some((value) => positive(value))) {
      data.push({ name: word("difference carried"), x, y: carried.map(positive), mode: "lines", line: { color: colour("quiet"), width: 1.2, shape: "hv" }, text: paths, hovertemplate: "%{text}<br>%{y:.2e}<extra></extra>" });
    }
    if (floor.some((value) => value)) {
      data.push({ name: word("floor"), x, y: floor, mode: "lines", connectgaps: true, line: { color: colour("good"), width: 1.4, dash: "dot" }, text: paths, hovertemplate: "%{text}<br>%{y:.2e}<extra></extra>" });
      const points = (name, wanted, style) => ({
        name: word(name), x, y: own.map((value, index) => wanted(scores[index]) ? value : null), text: paths, customdata: scores.map(times),
        hovertemplate: "%{text}<br>%{y:.2e}, %{customdata}<extra></extra>", ...style,
      });
      const few = { mode: "markers", marker: { size: 5, color: colour("accent") } };
      const many = { mode: "lines", connectgaps: true, line: { width: 1, color: colour("accent") } };  // thousands of circles are slow
      data.push(points("own error, relative", (score) => score <= facts.limit, paths.length > MANY ? many : few));
      if (scores.some((score) => score > facts.limit)) {
        data.push(points("beyond the limit", (score) => score > facts.limit, { mode: "markers", marker: { size: 9, color: colour("level5") } }));
      }
    }
    return { data, layout: layout({ xaxis: axis(word("call"), { showgrid: false, ...counted(paths.length) }), yaxis: log(word("relative"), data.flatMap((each) => each.y)), height: 290 }), click: (point) => facts.depth.rows[point.x] };
  };
  const curve = (each) => {
    const x = each.reference.map((_, index) => index);
    const line = (name, values, style) => ({ name: word(name), x, y: values.map((value) => { const n = number(value); return Number.isFinite(n) ? n : null; }), mode: each.reference.length > 1 ? "lines" : "markers", line: style });
    const shapes = each.horizon === null ? [] : [{ type: "line", xref: "x", yref: "paper", x0: each.horizon, x1: each.horizon, y0: 0, y1: 1, line: { color: colour("warn"), width: 1.5, dash: "dash" } }];
    const annotations = each.horizon === null ? [] : [{ x: each.horizon, y: 1, yref: "paper", xanchor: "left", yanchor: "top", showarrow: false, text: word("chaos horizon"), font: { color: colour("warn"), size: 11 } }];
    const finite = [...each.reference, ...each.port].map(number).filter(Number.isFinite);
    const flat = finite.length && finite.every((value) => value === finite[0]) && finite[0] !== 0;
    const yaxis = axis("", flat ? { range: [0, 2 * finite[0]].sort((a, b) => a - b) } : {});
    return { data: [line("reference", each.reference, { color: colour("accent"), width: 3 }), line("port", each.port, { color: colour("bad"), width: 1.6, dash: "dash" })], layout: layout({ xaxis: axis(word(each.along), { tickformat: "d", ...(x.length < 9 ? { dtick: 1 } : {}) }), yaxis, shapes, annotations }) };
  };
  const histogram = ([low, high, counts]) => {
    const width = (high - low) / counts.length;
    const most = Math.max(...counts);
    const scale = most < 10 ? { rangemode: "tozero", dtick: most < 6 ? 1 : 2 } : { type: "log", dtick: 1, range: [Math.log10(0.6), Math.log10(most * 1.4)] };
    return {
      data: [{ type: "bar", x: counts.map((_, index) => low + (index + 0.5) * width), y: counts.map((each) => each || null), width, marker: { color: colour("accent") }, hovertemplate: "%{x:.2e}: %{y}<extra></extra>" }],
      layout: layout({ height: 215, xaxis: axis(word("port - reference"), { exponentformat: "e", nticks: 6 }), yaxis: axis(word("elements"), scale), bargap: 0 }),
    };
  };
  const heat = (map) => {
    const [rowsLength, columnsLength] = map.lengths;
    const values = map.levels.map((row) => row.match(/../g).map((digits) => { const level = parseInt(digits, 16); return level ? map.peak * 10 ** ((level / 255 - 1) * 6) : 0; }));
    const scale = (length, cells) => Array.from({ length: cells }, (_, index) => cells === length ? index : Math.round((index + 0.5) * length / cells - 0.5));
    return {
      data: [{ type: "heatmap", z: values, x: scale(columnsLength, values[0].length), y: scale(rowsLength, values.length), colorscale: [[0, colour("raised")], [0.35, colour("level3")], [0.7, colour("level4")], [1, colour("level5")]], zmin: 0, zmax: map.peak || 1, colorbar: { thickness: 8, outlinewidth: 0, exponentformat: "e", tickfont: { size: 10 }, nticks: 4 }, hovertemplate: "[%{y}, %{x}]: %{z:.2e}<extra></extra>" }],
      layout: layout({ height: 215, xaxis: axis(axes(map.axes[1]), { showgrid: false }), yaxis: axis(map.axes[0].length ? axes(map.axes[0]) : "", { showgrid: false, autorange: "reversed", visible: rowsLength > 1 }) }),
    };
  };
  const draw = async (target) => {
    const figure = drawn.get(target)();
    try {
      const plotly = await library();
      if (!target.isConnected) return;
      await plotly.react(target, figure.data, figure.layout, { displayModeBar: false, responsive: true });
      if (figure.click && !target.dataset.clickable) {
        target.dataset.clickable = "yes";
        target.on("plotly_click", (event) => { const index = figure.click(event.points[0]); toggle(index, true); focus(index); lineOf(index).scrollIntoView({ block: "center" }); });
      }
      target.dataset.drawn = "yes";
    } catch (error) {
      if (error.message !== "too old") throw error;
      target.replaceChildren(make("p", { class: "quiet" }, ...label("Plots need a browser of 2023 or later.")));
    }
  };
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "300px" });
  const plot = (target, figure) => { drawn.set(target, figure); seen.observe(target); };
  const redraw = () => {
    for (const target of drawn.keys()) {
      if (!target.isConnected) drawn.delete(target);
      else if (target.dataset.drawn) draw(target);
    }
  };
  for (const target of all("[data-difference]")) {
    const each = facts.differences[Number(target.dataset.difference)];
    if (each.error) target.replaceWith(pictures(each.error));
  }
  for (const target of all('[data-plot="forward"], [data-plot="backward"]')) plot(target, () => along(target.dataset.plot));
  for (const target of all('[data-plot="curve"]')) plot(target, () => curve(facts.curves[Number(target.dataset.number)]));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // whoever prints has not scrolled: everything is drawn once there is time for it
  const rest = () => { for (const target of drawn.keys()) if (target.isConnected && !target.dataset.drawn) { seen.unobserve(target); draw(target); } };
  addEventListener("load", () => setTimeout(rest, 600));
  addEventListener("beforeprint", rest);

  speak((navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en");
  root.dataset.ready = "yes";
})();
