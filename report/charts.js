/*
 * Elements, figures and pictures.  Text from the data becomes text nodes and attributes,
 * never markup.
 */
const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'css') Object.assign(node.style, value);
    else if (name === 'click') node.addEventListener('click', value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== '') node.append(child);
  }
  return node;
}
const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const byId = (id) => document.getElementById(id);

// Figures for eyes: three digits or so.
function figure(x) {
  if (x === null || x === undefined) return '\u2013';
  const size = Math.abs(x);
  if (size >= 10000) return Math.round(x).toLocaleString('en-US');
  if (size >= 99.5 || Number.isInteger(x)) return String(Math.round(x));
  if (size >= 9.95) return x.toFixed(1);
  return size < 0.005 ? '< 0.01' : x.toFixed(2).replace(/\.?0+$/, '');
}
const sessions = (x) => (x === null || x === undefined ? '\u2013' : x < 9.95 ? x.toFixed(1) : String(Math.round(x)));
const percent = (x) => (x === null || x === undefined ? '\u2013' : x > 0 && x < 0.005 ? '< 1 %' : `${Math.round(100 * x)} %`);
function duration(ms) {
  if (ms === null || ms === undefined) return '\u2013';
  for (const [unit, size, next] of [['ms', 1, 1000], ['s', 1000, 100000], ['min', 60000, 6000000], ['h', 3600000, 360000000]]) {
    if (ms < next) return `${figure(ms / size)} ${unit}`;
  }
  return `${Math.round(ms / 86400000)} d`;
}
const count = (n, one, many) => `${figure(n)} ${n === 1 ? one : many}`;
const moment = (text) => new Date(text);
const clock = (date, seconds) => date.toLocaleTimeString('en-GB', seconds ? {} : { hour: '2-digit', minute: '2-digit' });

// A table: columns are [heading, class]; rows are lists of cells, of which the first is the row's heading.
function table(caption, columns, rows, kind = '') {
  const place = el('div', { class: 'scroll', role: 'region', 'aria-label': caption },
    el('table', { class: kind },
      el('caption', {}, caption),
      el('thead', {}, el('tr', {}, columns.map(([name, type]) => el('th', { scope: 'col', class: type }, name)))),
      el('tbody', {}, rows.map((row) => el('tr', {}, row.map((cell, i) => (i === 0
        ? el('th', { scope: 'row' }, cell)
        : el('td', { class: columns[i][1], 'data-name': columns[i][0] }, cell))))))));
  // where it has to be scrolled, a keyboard must be able to
  new ResizeObserver(() => {
    if (place.scrollWidth > place.clientWidth) place.setAttribute('tabindex', 0);
    else place.removeAttribute('tabindex');
  }).observe(place);
  return place;
}

// A bar of parts; each is { name, color, value }.  "whole" is the length of the track.
function stacked(parts, whole, unit, big = false) {
  const sum = parts.reduce((total, part) => total + part.value, 0);
  const shown = parts.filter((part) => part.value > 0 && part.value >= whole / 400);
  const said = shown.filter((part) => part.value >= sum / 100).map((part) => `${part.name} ${percent(part.value / sum)}`).join(', ');
  return el('div', { class: big ? 'bar-track big' : 'bar-track', role: 'img', 'aria-label': said || 'nothing' },
    shown.map((part) => el('i', {
      class: part.color,
      title: `${part.name}: ${percent(part.value / sum)}, ${unit(part.value)}`,
      css: { width: `${100 * part.value / whole}%`, background: `var(--${part.color})` },
    }, big ? el('span', {}, part.name) : '')));
}

// A scale's end and its marks: round numbers.
function rounded(most, steps = 4) {
  const raw = Math.max(most, 1e-9) / steps;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = size * [1, 2, 2.5, 5, 10].find((n) => n * size >= raw * 0.999);
  const end = step * Math.ceil(most / step - 1e-9) || step;
  return { end, marks: Array.from({ length: Math.round(end / step) + 1 }, (_, i) => i * step) };
}

// Text that fits into so many pixels.
const measure = document.createElement('canvas').getContext('2d');
function fitted(text, width, font = '12px system-ui, sans-serif') {
  measure.font = font;
  if (measure.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 0 && measure.measureText(`${text.slice(0, end)}\u2026`).width > width) end -= 1;
  return `${text.slice(0, end)}\u2026`;
}

// A picture of its place's width, drawn again when that changes.
function picture(place, label, paint) {
  const holder = el('div');
  let width = 0;
  const again = () => {
    const now = Math.max(Math.round(holder.clientWidth), 240);
    if (now === width) return;
    width = now;
    const { height, children } = paint(width);
    holder.replaceChildren(draw('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label }, children));
  };
  place.append(holder);
  again();
  new ResizeObserver(again).observe(holder);
  return () => { width = 0; again(); };
}

// Columns over time; each is { from, to, parts, total }.  Some moments can be marked, and chosen.
function columnsOverTime(place, columns, label, unit, marked = [], choose = null) {
  picture(place, label, (width) => {
    const height = 220, left = 34, bottom = 24, top = 14;
    const start = columns[0].from.getTime();
    const span = Math.max(columns.at(-1).to.getTime() - start, 1);
    const scale = rounded(Math.max(...columns.map((c) => c.total), 0.1));
    const x = (date) => left + (width - left) * (date.getTime() - start) / span;
    const y = (value) => top + (height - top - bottom) * (1 - value / scale.end);
    const children = scale.marks.map((mark) => [
      draw('line', { class: 'axis', x1: left, x2: width, y1: y(mark), y2: y(mark) }),
      draw('text', { x: left - 6, y: y(mark) + 4, 'text-anchor': 'end' }, figure(mark))]);
    for (const column of columns) {
      let base = 0;
      const wide = Math.max(x(column.to) - x(column.from) - (width / columns.length > 6 ? 1 : 0), 0.5);
      for (const part of column.parts) {
        if (part.value <= 0) continue;
        children.push(draw('rect', { x: x(column.from), width: wide, y: y(base + part.value), height: Math.max(y(base) - y(base + part.value), 0), css: { fill: `var(--${part.color})` } },
          draw('title', {}, `${clock(column.from, true)}: ${part.name} ${unit(part.value)}`)));
        base += part.value;
      }
    }
    marked.forEach((at, i) => children.push(draw('path', { class: 'moment', d: `M${x(at) - 6} 0h12l-6 11z`, click: () => choose(i) },
      draw('title', {}, clock(at)))));
    const labels = Math.max(Math.min(Math.floor(width / 110), 7, Math.floor(span / 1000)), 2);
    for (let i = 0; i < labels; i += 1) {
      const at = new Date(start + span * i / (labels - 1));
      children.push(draw('text', { x: x(at), y: height - 6, 'text-anchor': i === 0 ? 'start' : i === labels - 1 ? 'end' : 'middle' }, clock(at, span < 1800000)));
    }
    return { height, children };
  });
}

// A histogram over a logarithmic axis; buckets are { low, high, share } in milliseconds.
function histogram(place, buckets, mark, label) {
  picture(place, label, (width) => {
    const height = 132, bottom = 22, top = 18;
    const low = Math.log10(Math.min(buckets[0].low, mark ? mark * 0.8 : Infinity));
    const high = Math.log10(Math.max(buckets.at(-1).high, mark ? mark * 1.25 : 0));
    const x = (ms) => width * (Math.log10(ms) - low) / Math.max(high - low, 0.1);
    const most = Math.max(...buckets.map((b) => b.share));
    const y = (share) => top + (height - top - bottom) * (1 - share / most);
    const children = [draw('line', { class: 'axis', x1: 0, x2: width, y1: height - bottom, y2: height - bottom })];
    for (const b of buckets) {
      children.push(draw('rect', { class: 'column', x: x(b.low), width: Math.max(x(b.high) - x(b.low) - 1, 1), y: y(b.share), height: height - bottom - y(b.share) },
        draw('title', {}, `${duration(b.low)} to ${duration(b.high)}: ${percent(b.share)}`)));
    }
    let free = 0;
    for (const bound of [...buckets.map((b) => b.low), buckets.at(-1).high]) {
      const at = x(bound);
      if (at < free || at > width - 4 && at < width - 1) continue;
      const end = at > width - 24;
      children.push(draw('text', { x: at, y: height - 6, 'text-anchor': at < 20 ? 'start' : end ? 'end' : 'middle' }, duration(bound)));
      free = at + (at < 20 ? 88 : 62);
    }
    if (mark) {
      const right = x(mark) > width / 2;
      children.push(draw('line', { class: 'mark', x1: x(mark), x2: x(mark), y1: 2, y2: height - bottom }),
        draw('text', { class: 'strong', x: x(mark) + (right ? -6 : 6), y: 12, 'text-anchor': right ? 'end' : 'start' }, `round trip ${duration(mark)}`));
    }
    return { height, children };
  });
}

// Who waits behind whom: trees of { title, text, label, children }, from left to right
// where there is room, otherwise indented.
function trees(place, roots, label) {
  picture(place, label, (width) => {
    const indented = width < 640;
    const depth = (node) => 1 + Math.max(0, ...node.children.map(depth));
    const levels = Math.max(...roots.map(depth));
    const step = indented ? 22 : Math.min(width / levels, 460);
    const wide = indented ? null : Math.min(step - 70, 380);
    const tall = 46, gap = 12, children = [];
    let next = 0;
    const put = (node, level, isRoot) => {
      const left = level * step;
      const boxWidth = wide ?? width - left - 2;
      let top;
      if (indented) {
        top = next;
        next += tall + gap;
      }
      const below = node.children.map((child) => put(child, level + 1, false));
      if (!indented) {
        if (below.length === 0) {
          top = next;
          next += tall + gap;
        } else top = (below[0] + below.at(-1)) / 2;
      }
      for (const to of below) {
        const path = indented
          ? `M${left + 10} ${top + tall} V${to + tall / 2} H${left + step}`
          : `M${left + boxWidth} ${top + tall / 2} C${left + boxWidth + 45} ${top + tall / 2}, ${left + step - 45} ${to + tall / 2}, ${left + step} ${to + tall / 2}`;
        children.unshift(draw('path', { class: 'edge', d: path }));
      }
      children.push(draw('rect', { class: isRoot ? 'node root' : 'node', x: left + 1, y: top + 1, width: boxWidth - 2, height: tall - 2, rx: 6 }),
        draw('text', { class: 'strong', x: left + 12, y: top + 19 }, fitted(node.title, boxWidth - 28, '600 12px system-ui, sans-serif')),
        draw('text', { x: left + 12, y: top + 36 }, fitted(node.text, boxWidth - 24), draw('title', {}, node.text)));
      return top;
    };
    for (const root of roots) put(root, 0, true);
    return { height: next, children };
  });
}
