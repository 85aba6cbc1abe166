// What is wrong with a page, as lists of texts.

// Texts with a contrast of less than 4.5 : 1 to what is behind them.
function paleTexts() {
  const rgb = (color) => color.match(/[\d.]+/g).map(Number);
  const light = (color) => color.slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = rgb(getComputedStyle(e).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const bad = new Set();
  for (const e of document.querySelectorAll('body *')) {
    if (e.closest('svg, script, noscript, option, .bar-track')) continue;
    if (![...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim())) continue;
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) bad.add(`${e.tagName} ${e.className}: ${contrast.toFixed(1)}`);
  }
  return [...bad];
}

// What a screen reader would miss.
function barriers() {
  const bad = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const named = (e) => e.getAttribute('aria-label') || e.labels?.length
    || document.getElementById(e.getAttribute('aria-labelledby'))?.textContent;
  for (const e of all('select, input, [role=img], [role=region], nav, section')) {
    if (!named(e)) bad.push(`no name: ${e.outerHTML.slice(0, 80)}`);
  }
  for (const e of all('table')) {
    if (!e.querySelector('caption')) bad.push('a table without a caption');
    if (!e.querySelector('thead th[scope=col]') || !e.querySelector('tbody th[scope=row]')) bad.push('a table without headers');
  }
  for (const tag of ['header', 'main', 'nav', 'footer', 'h1']) {
    if (all(tag).length !== 1) bad.push(`not one ${tag}`);
  }
  let level = 1;
  for (const e of all('h1, h2, h3')) {
    if (Number(e.tagName[1]) > level + 1) bad.push(`level of ${e.textContent}`);
    level = Number(e.tagName[1]);
  }
  const ids = all('[id]').map((e) => e.id);
  if (new Set(ids).size !== ids.length) bad.push('an id twice');
  if (!document.documentElement.lang || !document.title) bad.push('no language or title');
  return bad;
}

// Parts of bars whose colour the legend has for something else.
function otherMeanings() {
  const meanings = new Map([...document.querySelectorAll('#legend li')].map((e) => [
    e.querySelector('.swatch').style.background, e.querySelector('b').textContent.replace('Server: ', '').toLowerCase()]));
  return [...document.querySelectorAll('.bar-track i')].map((e) => [meanings.get(e.style.background), e.title])
    .filter(([meaning, title]) => meaning && !title.toLowerCase().startsWith(meaning))
    .map(([meaning, title]) => `${title}: in the colour of ${meaning}`);
}

// Texts in bars that are partly seen.
function cutTexts() {
  const text = (e) => {
    const range = document.createRange();
    range.selectNodeContents(e);
    return range.getBoundingClientRect();
  };
  return [...document.querySelectorAll('.bar-track i')].filter((e) => {
    const [bar, words] = [e.getBoundingClientRect(), text(e)];
    return e.textContent && words.top < bar.bottom && (words.left < bar.left || words.right > bar.right);
  }).map((e) => e.textContent);
}
