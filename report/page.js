// The page before anything is drawn on it: a moment of the past is drawn on a copy.
const blank = document.body.cloneNode(true);

function show(data, past) {
  for (const list of ['findings', 'now', 'clients', 'history', 'waiting', 'blockers', 'histograms', 'statements',
    'failed_connections', 'pools', 'what_if', 'settings']) data[list] ??= [];
  const { report, info, thresholds } = data;
  const elapsed = report.window_time || 1;
  const setting = (name) => data.settings.find((s) => s.name === name)?.value;

  // --- parts of the time -------------------------------------------------------------

  // In the order of a bar.  "of" is milliseconds, from an account's columns; together
  // they are total_time - idle_time - pending_time.
  const queuedInExec = (a) => Math.max(0, Math.min((a.run_queue_time ?? 0) - (a.run_queue_wait_time ?? 0), a.exec_cpu_time + a.exec_unsampled_time));
  const unsampled = (a) => Math.max(a.exec_unsampled_time - Math.max(queuedInExec(a) - a.exec_cpu_time, 0), 0);
  const PARTS = [
    { name: 'CPU', color: 'cpu', of: (a) => Math.max(a.exec_cpu_time - queuedInExec(a), 0) + a.send_time - a.send_blocked_time, says: 'the server computes, or hands over its answer' },
    { name: 'short work', color: 'unsampled', of: unsampled, says: 'the server works, too briefly for a sample to say at what: mostly CPU' },
    { name: 'I/O', color: 'io', of: (a) => a.exec_io_time, says: 'the server reads or writes files' },
    { name: 'locks', color: 'locks', of: (a) => a.exec_lock_time, says: 'it waits for a lock that another session holds' },
    { name: 'replication', color: 'replication', of: (a) => a.exec_replication_time, says: 'it waits for a standby to confirm' },
    { name: 'remote', color: 'remote', of: (a) => a.exec_remote_time, says: 'it waits for another server, as that server\u2019s client' },
    { name: 'run queue', color: 'queue', of: (a) => queuedInExec(a) + (a.run_queue_wait_time ?? 0), says: 'it is ready to work, but all CPUs are taken' },
    { name: 'other waits', color: 'other', of: (a) => a.exec_other_time, says: 'it waits for something else inside the server' },
    { name: 'network', color: 'network', of: (a) => a.network_time + a.send_blocked_time - a.send_client_time, says: 'bytes are under way: round trips, and large answers' },
    { name: 'client', color: 'client', of: (a) => a.client_time - (a.run_queue_wait_time ?? 0) + a.recv_time + a.send_client_time, says: 'the application thinks, does not read its results, or does not send its data' },
  ];
  const SERVER = PARTS.slice(0, 8);
  const parts = (account, unit) => PARTS.map((p) => ({ name: p.name, color: p.color, value: Math.max(p.of(account), 0) / unit }));
  const busyOf = (list) => list.reduce((total, part) => total + part.value, 0);
  const inSessions = (x) => `${sessions(x)} ${x === 1 ? 'session' : 'sessions'}`;

  // What the colours of bars stand for that have parts of their own.
  const swatches = (label, kinds) => el('ul', { class: 'legend', 'aria-label': label },
    kinds.map(([name, color]) => el('li', {}, el('span', { class: 'swatch', css: { background: `var(--${color})` } }), name)));

  // --- names -------------------------------------------------------------------------

  const appOf = (c) => c.application_name || c.usename || c.backend_type || 'unnamed';
  const placeOf = (c) => (c.client_addr ? String(c.client_addr).replace(/\/(32|128)$/, '') : 'local');
  const groupName = (c) => [appOf(c), el('small', {}, `${c.usename ?? 'a dropped role'} in ${c.datname ?? 'a dropped database'}, ${placeOf(c)}`)];
  const key = (c) => [c.datid, c.usesysid, c.application_name, c.client_addr].join('\u0001');
  const clientByKey = new Map(data.clients.map((c) => [key(c), c]));

  // --- the sentence ------------------------------------------------------------------

  const isFine = (f) => f.verdict === 'no problem found' || f.verdict === 'not visible';
  const sentence = (f) => `${f.subject} ${data.headlines?.[f.verdict] ?? `: ${f.verdict}`}`;
  const subjectText = (f) => f.subject.replace(/^server$/, 'The server');
  const problems = data.findings.filter((f) => !isFine(f));
  // How bad a finding is: what it is called, and its colour.
  const TAG = { outage: 'bad', loss: 'warn' };
  const severityTag = (f) => (f.severity === null ? null : el('span', { class: `tag ${TAG[f.severity] ?? ''}` }, f.severity));
  const busy = report.busy_time / elapsed;

  function summary() {
    const first = problems[0];
    const headline = byId('headline'), cost = byId('cost');
    if (first) {
      const lost = first.lost_sessions, saving = first.saving_sessions;
      const more = problems.length - 1;
      headline.textContent = sentence({ ...first, subject: subjectText(first) })
        + (lost > 0 ? `: that costs the time of ${sessions(lost)} of ${sessions(Math.max(busy, lost))} busy sessions.` : '.');
      const dearest = problems.reduce((a, b) => (b.lost_sessions > a.lost_sessions ? b : a));
      if (dearest !== first) headline.textContent += ` The most expensive: ${sentence(dearest)}, ${inSessions(dearest.lost_sessions)}.`;
      headline.closest('section').classList.add(first.severity ?? 'unsure');
      cost.textContent = (saving > 0 ? `${lost > 0 && saving >= 0.95 * lost ? 'Nearly all of that' : `The time of ${sessions(saving)} sessions`} could be saved. ` : '')
        + (more > 0 ? `${count(more, 'more finding', 'more findings')} below.` : 'There is no other finding.');
    } else {
      const fine = data.findings[0];
      headline.textContent = fine?.verdict === 'no problem found' || !fine ? 'No problem found.' : `${sentence({ ...fine, subject: subjectText(fine) })}.`;
      cost.textContent = fine?.evidence ?? '';
      headline.closest('section').classList.add(fine?.verdict === 'not visible' ? 'unsure' : 'fine');
    }
    byId('about').append(
      `${report.cluster ?? `database ${report.database}`} \u00b7 last ${duration(report.window_time)} before `,
      el('time', { datetime: report.at }, moment(report.at).toLocaleString('en-GB', { dateStyle: 'long', timeStyle: 'short' })),
      ` \u00b7 PostgreSQL ${report.server_version.split(' ')[0]}`);
    document.title = `pgnetlat: ${headline.textContent}`;
    byId('contents').append(...[...document.querySelectorAll('section:not([hidden]) h2')].map((h) => el('li', {}, el('a', { href: `#${h.id}` }, h.textContent))));
    overall();
  }

  function overall() {
    const all = PARTS.map((p) => ({ name: p.name, color: p.color, value: data.clients.reduce((t, c) => t + Math.max(p.of(c), 0), 0) / elapsed }));
    const sum = busyOf(all);
    const share = (names) => all.filter((p) => names.includes(p.name)).reduce((t, p) => t + p.value, 0) / sum;
    const requests = data.clients.reduce((t, c) => t + c.requests, 0) * 1000 / elapsed;
    const line = (name, value, small) => el('div', {}, el('dt', {}, name), el('dd', {}, value, ' ', el('small', {}, small)));
    byId('overall').append(
      el('dl', { class: 'figures' },
        line('Busy', sessions(busy), 'sessions on average'),
        line('Requests', figure(requests), 'per second'),
        line('Server', sum ? percent(share(SERVER.map((p) => p.name))) : '\u2013', 'of busy time'),
        line('Network', sum ? percent(share(['network'])) : '\u2013', 'of busy time'),
        line('Client', sum ? percent(share(['client'])) : '\u2013', 'of busy time')),
      sum ? stacked(all, sum, inSessions, true) : null);
  }

  function warnings() {
    const list = [];
    if (!report.sees_all) list.push(`The role ${report.role} sees its own sessions only; a member of pg_read_all_stats sees all.`);
    if (info.sampler_pid === null) list.push('The sampler is down: the parts of execution, locks and history are not up to date.');
    if (info.sampler_errors > 0) list.push(`The sampler has had ${count(info.sampler_errors, 'error', 'errors')}: see the server\u2019s log.`);
    if (setting('pgnetlat.enabled') === 'off') list.push('pgnetlat.enabled is off: nothing is counted.');
    byId('warnings').append(...list.map((text) => el('li', {}, text)));
  }

  // --- findings ----------------------------------------------------------------------

  // A statement of which a finding has the identifier only may be among those below, with its text.
  const textOf = (f) => {
    const query = f.queryid && f.evidence.endsWith(f.queryid) && data.statements.find((s) => s.queryid === f.queryid && s.userid === f.usesysid)?.query;
    return query ? `: ${query}` : '';
  };

  function findings() {
    const most = Math.max(...data.findings.map((f) => f.lost_sessions ?? 0), 0.001);
    const meter = (kind, value) => el('span', { class: `meter ${kind}`, 'aria-hidden': 'true' }, el('i', { css: { width: `${Math.min(100 * value / most, 100)}%` } }));
    byId('findings').append(...data.findings.map((f) => el('li', {},
      el('div', {},
        el('h3', {}, subjectText(f), ' ', el('span', { class: `tag ${TAG[f.severity] ?? ''}` }, f.verdict), ' ', severityTag(f)),
        el('p', { class: 'evidence' }, f.evidence, textOf(f)),
        f.advice ? el('p', {}, el('strong', {}, 'Next step: '), f.advice) : null),
      isFine(f) ? null : el('dl', {},
        el('div', {}, el('dt', {}, 'Cost'), el('dd', {}, inSessions(f.lost_sessions), meter('', f.lost_sessions))),
        f.saving_sessions === null ? null
          : el('div', {}, el('dt', {}, 'Could be saved'), el('dd', {}, inSessions(f.saving_sessions),
            f.saving_share === null ? '' : `, ${percent(f.saving_share)} of its time`, meter('save', f.saving_sessions)))))));
  }

  // --- where the time goes -------------------------------------------------------------

  function legend() {
    const item = (color, name, says) => el('li', {}, el('span', { class: 'swatch', css: { background: `var(--${color})` } }), el('span', {}, el('b', {}, name), ` ${says}`));
    byId('legend').append(el('ul', { class: 'legend', 'aria-label': 'Legend' },
      PARTS.map((p, i) => item(p.color, i < 8 ? `Server: ${p.name}` : p.name[0].toUpperCase() + p.name.slice(1), p.says))));
  }

  function clients() {
    const groups = data.clients.map((c) => ({ c, list: parts(c, elapsed) })).map((g) => ({ ...g, busy: busyOf(g.list) })).filter((g) => g.busy > 0.0005).slice(0, 20);
    const place = byId('clients');
    const show = (relative) => {
      const most = Math.max(...groups.map((g) => g.busy));
      place.replaceChildren(groups.length === 0 ? el('p', { class: 'note' }, 'No client was busy.') : table('Time by client group, the busiest first',
        [['Clients', ''], ['Where its busy time went', 'bar'], ['busy', 'n'], ['idle', 'n'], ['requests/s', 'n'], ['round trip', 'n']],
        groups.map((g) => [groupName(g.c), stacked(g.list, relative ? g.busy : most, inSessions),
          sessions(g.busy), sessions(g.c.idle_time / elapsed), figure(1000 * g.c.requests / elapsed), duration(g.c.rtt)]), 'stack'),
      el('p', { class: 'says' }, 'busy and idle: sessions, on average.',
        report.client_groups > groups.length ? ` ${count(report.client_groups - groups.length, 'group is', 'groups are')} not shown: idle, hidden or small.` : ''));
    };
    const option = (value, text, checked) => el('label', {}, el('input', { type: 'radio', name: 'scale', value, checked }), ` ${text}`);
    byId('scale').append(option('sessions', 'time in sessions: long bars matter most', true), option('share', 'shares of each group\u2019s own time', false));
    byId('scale').addEventListener('change', (event) => show(event.target.value === 'share'));
    show(false);
  }

  function history() {
    const place = byId('history');
    const rows = data.history.filter((h) => moment(h.bucket_end) > moment(h.bucket_start));
    if (rows.length === 0) {
      place.append(el('p', { class: 'note' }, report.sees_all ? 'There is no history yet.' : 'The history covers all roles, so only members of pg_read_all_stats see it.'));
      return;
    }
    // as many columns as can be told apart
    const per = Math.ceil(rows.length / 120);
    const columns = [];
    for (let i = 0; i < rows.length; i += per) {
      const some = rows.slice(i, i + per);
      const from = moment(some[0].bucket_start), to = moment(some.at(-1).bucket_end);
      const lists = some.map((h) => parts(h, to - from));
      const list = lists[0].map((p, n) => ({ ...p, value: lists.reduce((t, l) => t + l[n].value, 0) }));
      columns.push({ from, to, parts: list, total: busyOf(list), requests: some.reduce((t, h) => t + h.requests, 0) });
    }
    const peak = columns.reduce((a, b) => (b.total > a.total ? b : a));
    columnsOverTime(place, columns, `Busy sessions over time, from ${clock(columns[0].from, true)} to ${clock(columns.at(-1).to, true)}; the most, ${sessions(peak.total)}, at ${clock(peak.from, true)}`, inSessions);
    place.append(el('details', {}, el('summary', {}, 'The same in figures'),
      table('Busy sessions by interval', [['from', ''], ['busy', 'n'], ['server', 'n'], ['of which locks', 'n'], ['network', 'n'], ['client', 'n'], ['requests/s', 'n']],
        columns.slice(-60).reverse().map((c) => {
          const value = (name) => c.parts.find((p) => p.name === name).value;
          return [clock(c.from, true), sessions(c.total), sessions(SERVER.reduce((t, p) => t + value(p.name), 0)), sessions(value('locks')),
            sessions(value('network')), sessions(value('client')), figure(1000 * c.requests / (c.to - c.from))];
        }))));
  }

  // --- the last day ----------------------------------------------------------------------

  function day() {
    if (!past) return;
    byId('day').hidden = false;
    const turn = (to) => { show(to, past); byId('main').focus(); window.scrollTo(0, 0); };
    const total = new Map();
    for (const { lost } of past.steps) for (const [verdict, value] of Object.entries(lost)) total.set(verdict, (total.get(verdict) ?? 0) + value);
    const verdicts = [...total.keys()].sort((a, b) => total.get(b) - total.get(a));
    const kinds = verdicts.slice(0, 5).map((name, i) => [name, ['locks', 'queue', 'io', 'network', 'replication'][i]]);
    if (verdicts.length > 5) kinds.push(['other findings', 'other']);
    const STEP = 600000;
    const column = (from, list) => ({ from, to: new Date(from.getTime() + STEP), parts: list, total: busyOf(list) });
    const columns = past.steps.map(({ at, lost }) => {
      const rest = verdicts.slice(5).reduce((sum, verdict) => sum + (lost[verdict] ?? 0), 0);
      const list = kinds.map(([name, color]) => ({ name, color, value: lost[name] ?? (name === 'other findings' ? rest : 0) }));
      return column(moment(at), list);
    });
    const peak = columns.reduce((a, b) => (b.total > a.total ? b : a));
    // what nobody has written down is not nothing
    for (let at = columns[0].from.getTime() + STEP, i = 1; i < columns.length; at += STEP) {
      if (columns[i].from.getTime() > at) columns.splice(i, 0, column(new Date(at), [{ name: 'no journal', color: 'idle', value: peak.total || 0.1 }]));
      i += 1;
    }
    if (columns.length > past.steps.length) kinds.push(['no journal', 'idle']);
    columnsOverTime(byId('lost'), columns, peak.total > 0
      ? `Lost sessions over the last day; the most, ${sessions(peak.total)}, at ${clock(peak.from)}` : 'Nothing was lost in the last day', inSessions,
    past.moments.map((then) => moment(then.report.at)), (i) => turn(past.moments[i]));
    if (kinds.length) byId('lost').append(swatches('Findings', kinds));
    const choice = (to, text) => el('li', {}, el('button', { type: 'button', 'aria-pressed': String(to === data), click: () => turn(to) }, text));
    byId('moments').append(el('ul', { class: 'moments' },
      choice(past.now, 'Now'),
      past.moments.map((then) => {
        const first = (then.findings ?? [])[0];
        return choice(then, `${clock(moment(then.report.at))} ${first ? `${first.subject} ${then.headlines?.[first.verdict] ?? first.verdict}` : ''}`);
      })));
  }

  // --- locks -----------------------------------------------------------------------------

  function waiting() {
    const place = byId('waiting');
    if (data.waiting.length === 0) {
      place.append(el('p', { class: 'note' }, 'Nobody waits for a lock at this moment.'));
      return;
    }
    const STATES = { 'waiting in transaction': 'idle in transaction' };
    const nodes = new Map(data.waiting.map((s) => [s.pid, {
      s,
      title: s.pid === 0 ? 'a prepared transaction' : `${appOf(s)}, pid ${s.pid}`,
      text: [s.state ? `${STATES[s.state] ?? s.state} for ${duration(s.age)}` : s.backend_type, s.query].filter(Boolean).join(' \u00b7 '),
      children: [],
    }]));
    const roots = [];
    for (const node of nodes.values()) {
      const behind = node.s.behind ?? [];
      const parent = node.s.blocked_by === null ? null
        : behind.includes(node.s.blocked_by) ? node.s.blocked_by : behind.find((pid) => nodes.has(pid) && pid !== node.s.pid) ?? node.s.blocked_by;
      const above = (pid, seen = []) => (pid === node.s.pid ? true : seen.includes(pid) || !nodes.get(pid)?.parent ? false : above(nodes.get(pid).parent, [...seen, pid]));
      if (parent !== null && nodes.has(parent) && !above(parent)) {
        node.parent = parent;
        nodes.get(parent).children.push(node);
      } else roots.push(node);
    }
    const size = (node) => 1 + node.children.reduce((t, child) => t + size(child), 0);
    roots.sort((a, b) => size(b) - size(a));
    const waits = roots.map((r) => `${r.title} blocks ${size(r) - 1}`).join('; ');
    place.append(el('p', { class: 'lead' }, 'At this moment: on the left, who holds the lock; to the right, who waits for it, and who waits behind them.'));
    trees(place, roots, waits);
    place.append(el('details', {}, el('summary', {}, 'The same as a table'),
      table('Sessions that wait for locks, and those that hold them', [['Session', ''], ['blocked by', 'n'], ['state', ''], ['since', 'n'], ['query', 'text']],
        [...nodes.values()].map((n) => [n.title, n.s.blocked_by === null ? '\u2013' : `pid ${n.parent ?? n.s.blocked_by}`, STATES[n.s.state] ?? n.s.state ?? n.s.backend_type, duration(n.s.age), n.s.query]))));
  }

  function now() {
    if (data.now.length === 0) return;
    byId('now').append(el('details', {}, el('summary', {}, `All sessions that were not idle at this moment: ${data.now.filter((n) => n.pid !== null).length}`),
      table('Sessions that were not idle, those that block others first', [['Client', ''], ['pid', 'n'], ['state', ''], ['requests/s', 'n'], ['round trip', 'n'], ['doing', 'text']],
        data.now.map((n) => [n.client ?? '', n.pid ?? '', n.state ?? '', n.pid === null ? '' : figure(n.rate), n.pid === null ? '' : duration(n.rtt), n.doing]))));
  }

  function blockers() {
    const place = byId('blockers');
    if (data.blockers.length === 0) {
      place.append(el('p', { class: 'note' }, 'No lock wait was long enough to be sampled.'));
      return;
    }
    const KINDS = [['executing', 'server', (b) => b.blocked_by_exec_time], ['network: round trips, or sending', 'network', (b) => b.blocked_by_network_time + b.blocked_by_send_time],
      ['client: thinking, or not sending its data', 'client', (b) => b.blocked_by_client_time + b.blocked_by_recv_time], ['other', 'idle', (b) => b.blocked_by_other_time]];
    const most = data.blockers[0].blocked_time;
    place.append(table('Since statistics were reset; time that others waited, by what the holder was doing', [['Holder', ''], ['Others waited while it was', 'bar'], ['waited', 'n'], ['longest', 'n'], ['most at once', 'n']],
      data.blockers.map((b) => [groupName(b), stacked(KINDS.map(([name, color, of]) => ({ name, color, value: of(b) })), most, duration),
        duration(b.blocked_time), duration(b.blocked_time_max), figure(b.blocked_sessions_max)]), 'stack'),
    swatches('What the holder was doing', KINDS));
  }

  // --- distributions -----------------------------------------------------------------------

  const METRICS = [
    ['wait', 'Waits between two requests', 'waits'], ['request', 'Requests, from the first byte read to the last byte sent', 'requests'],
    ['client', 'The client\u2019s part of the waits', 'waits'], ['rtt', 'Round trips', 'measurements'], ['connect', 'Setting up a connection', 'connections']];

  function histograms() {
    const select = byId('metric'), place = byId('histograms');
    const metrics = METRICS.filter(([metric]) => data.histograms.some((h) => h.metric === metric));
    const show = () => {
      const chosen = metrics.find(([metric]) => metric === select.value);
      place.replaceChildren();
      for (const h of data.histograms.filter((row) => chosen && row.metric === chosen[0]).slice(0, 12)) {
        const rtt = clientByKey.get(key(h))?.rtt ?? null;
        const bounds = h.le.map((le) => 1000 * Number(le.replace('+Inf', 'Infinity')));
        let buckets = bounds.map((high, i) => ({ low: i ? bounds[i - 1] : high / 2, high: high === Infinity ? 2 * bounds[i - 1] : high, share: (h.bucket[i] - (i ? h.bucket[i - 1] : 0)) / h.count }));
        buckets = buckets.slice(Math.max(buckets.findIndex((b) => b.share > 0) - 1, 0), buckets.findLastIndex((b) => b.share > 0) + 2);
        const middle = bounds.find((_, i) => h.bucket[i] >= h.count / 2);
        const box = el('figure', {}, el('figcaption', {}, groupName(h), el('small', {}, `${count(h.count, chosen[2].replace(/s$/, ''), chosen[2])}, mean ${duration(1000 * h.sum / h.count)}, half within ${duration(middle)}`)));
        place.append(box);
        histogram(box, buckets, rtt, `${chosen[1]} of ${appOf(h)}: mean ${duration(1000 * h.sum / h.count)}, half within ${duration(middle)}${rtt ? `, round trip ${duration(rtt)}` : ''}`);
      }
    };
    select.append(...metrics.map(([metric, text]) => el('option', { value: metric }, text)));
    if (metrics.length === 0) {
      select.closest('p').remove();
      place.append(el('p', { class: 'note' }, 'There are no distributions yet.'));
      return;
    }
    select.addEventListener('change', show);
    show();
  }

  // --- statements --------------------------------------------------------------------------

  function statements() {
    const rows = data.statements;
    if (rows.length === 0) {
      byId('statements').append(el('p', { class: 'note' }, setting('compute_query_id') === 'off' ? 'compute_query_id is off, so statements have no identifier.' : 'No statement was completed.'));
      return;
    }
    const repeats = (s) => s.repeats >= thresholds.repeats && s.repeats >= thresholds.repeats * (s.calls - s.repeats);
    const found = (s) => data.findings.some((f) => f.verdict === 'repeated statement' && f.queryid === s.queryid && f.usesysid === s.userid);
    const KINDS = [['server, its waits for locks and I/O included', 'server', (s) => s.exec_time], ['network: round trips, and sending', 'network', (s) => s.send_time + s.network_time],
      ['client: sending its data', 'client', (s) => s.recv_time]];
    const most = rows[0].time;
    byId('statements').append(table(`In the last ${duration(report.window_time)}`,
      [['Statement', ''], ['Time', 'bar'], ['calls/s', 'n'], ['per call', 'n'], ['repeats', 'n']],
      rows.filter((s) => s.time >= most / 1000 || repeats(s)).map((s) => [[el('span', { class: 'mono' }, s.query ?? `query identifier ${s.queryid}`), ' ', repeats(s) || found(s) ? el('span', { class: 'tag bad' }, 'N+1') : null,
        el('small', {}, `${s.usename ?? 'a dropped role'} in ${s.datname ?? 'a dropped database'}`)],
      stacked(KINDS.map(([name, color, of]) => ({ name, color, value: of(s) })), most, duration),
      figure(1000 * s.calls / s.window_time), duration(s.calls ? s.time / s.calls : null), s.repeats ? `${figure(s.repeats)} of ${figure(s.calls)}` : '\u2013']), 'stack statements'),
    swatches('Where the time of a statement goes', KINDS),
    rows.some((s) => s.query === null) ? el('p', { class: 'says' }, 'pg_stat_statements, if it is installed in this database, has the texts of statements. The text of another statement is known only while a session shows it as its latest one.') : '');
  }

  // --- connections ---------------------------------------------------------------------------

  function pools() {
    const place = byId('pools');
    const rows = data.pools.filter((p) => p.busy_p50 !== null);
    if (rows.length === 0) {
      place.append(el('p', { class: 'note' }, 'Nothing was sampled, or this role may not see it.'));
      return;
    }
    const most = Math.max(...rows.map((p) => Math.max(p.sessions, p.busy_max)), 1);
    const part = (name, color, value) => ({ name, color, value: Math.max(value, 0) });
    place.append(table('Sessions that are busy at once, that is in a request or a transaction',
      [['Pool', ''], ['half the time / 99 % / at most / connected', 'bar'], ['connected', 'n'], ['average', 'n'], ['half the time', 'n'], ['99 %', 'n'], ['at most', 'n'], ['pool size', 'n']],
      rows.map((p) => [p.usesysid === null && p.datid === null && p.datname === null ? 'all sessions' : [p.usename ?? 'evicted', el('small', {}, `in ${p.datname ?? 'a dropped database'}`)],
        stacked([part('half the time', 'most', p.busy_p50), part('99 % of the time', 'more', p.busy_p99 - p.busy_p50), part('at most', 'some', p.busy_max - Math.max(p.busy_p99, p.busy_p50)),
          part('connected, never busy at once', 'idle', p.sessions - p.busy_max)], most, inSessions),
        figure(p.sessions), sessions(p.busy_avg), figure(p.busy_p50), figure(p.busy_p99), figure(p.busy_max), el('strong', {}, p.busy_max >= p.sessions ? 'at least ' : '', figure(p.pool_size))]), 'stack'),
    el('p', { class: 'says' }, `Half the time, 99 %: the number of busy sessions that was not exceeded for that part of the time. Pool size: with this many server connections, transaction pooling would have served these sessions without a wait for 99.9 % of the time. max_connections is ${setting('max_connections')}.`));
  }

  function setup() {
    const place = byId('setup');
    const rows = data.clients.filter((c) => c.connections > 0).sort((a, b) => b.connect_time - a.connect_time).slice(0, 12);
    if (rows.length) {
      const most = Math.max(...rows.map((c) => c.connect_time / c.connections));
      place.append(table(`Connections that were set up in the last ${duration(report.window_time)}`,
        [['Clients', ''], ['Mean: encryption / authentication / the rest', 'bar'], ['connections', 'n'], ['mean', 'n'], ['round trips each', 'n'], ['in all', 'n']],
        rows.map((c) => [groupName(c), stacked([{ name: 'encryption', color: 'most', value: c.connect_tls_time / c.connections }, { name: 'authentication', color: 'more', value: c.connect_auth_time / c.connections },
          { name: 'the rest', color: 'some', value: Math.max(c.connect_time - c.connect_tls_time - c.connect_auth_time, 0) / c.connections }], most, duration),
        figure(c.connections), duration(c.connect_time / c.connections), figure(c.connect_round_trips / c.connections), duration(c.connect_time)]), 'stack'));
    } else place.append(el('p', { class: 'note' }, `Nobody connected in the last ${duration(report.window_time)}.`));
    if (data.failed_connections.length) {
      place.append(table('Connections that failed, since statistics were reset', [['Role', ''], ['database', ''], ['from', ''], ['failed', 'n'], ['last', 'n']],
        data.failed_connections.map((f) => [f.usename ?? '\u2013', f.datname ?? '\u2013', placeOf(f), figure(f.failed_connections), clock(moment(f.last_failed), true)])));
    }
  }

  // --- what if -----------------------------------------------------------------------------

  function whatIf() {
    const place = byId('whatif');
    const groups = data.what_if;
    if (groups.length === 0) {
      place.append(el('p', { class: 'note' }, 'Nothing is predicted: no client group has ended 20 transactions in this time.'));
      return;
    }
    const LOW = 0.05, HIGH = 200;
    const toRtt = (position) => LOW * (HIGH / LOW) ** (position / 100);
    const toPosition = (rtt) => Math.max(0, Math.min(100, 100 * Math.log(rtt / LOW) / Math.log(HIGH / LOW)));
    const select = el('select', { id: 'whatif-group' }, groups.map((g, i) => el('option', { value: i }, `${appOf(g)} (${placeOf(g)}), ${duration(g.transaction_time)} each`)));
    const range = (id, max, step) => el('input', { type: 'range', id, min: id === 'whatif-batch' ? 1 : 0, max, step });
    const rtt = range('whatif-rtt', 100, 0.5), batch = range('whatif-batch', 50, 1);
    const rttSays = el('output', { for: 'whatif-rtt' }), batchSays = el('output', { for: 'whatif-batch' });
    const answer = el('p', { class: 'answer', 'aria-live': 'polite', id: 'whatif-answer' });
    const chart = el('div');
    const fixed = el('p', { class: 'note' });
    place.append(el('div', { class: 'whatif' },
      el('div', {}, el('label', { for: 'whatif-group' }, 'Clients'), select,
        el('label', { for: 'whatif-rtt' }, 'Round trip: ', rttSays), rtt,
        el('label', { for: 'whatif-batch' }, 'Statements that share a round trip: ', batchSays), batch, fixed),
      el('div', {}, answer, chart)));

    let group = groups[0], moved = false;
    const asked = () => ({ rtt: group.rtt === null || !moved ? null : toRtt(Number(rtt.value)), batch: Number(batch.value) > 1 ? Number(batch.value) : null });
    const throughput = () => 1000 * group.busy_sessions / group.transaction_time;
    const paint = (width) => {
      const height = 230, left = 52, bottom = 36, top = 14;
      const steps = Array.from({ length: 61 }, (_, i) => toRtt(i * 100 / 60));
      const curve = steps.map((ms) => ({ ms, ...predict(group, { rtt: ms, batch: asked().batch }) })).filter((p) => p.throughput !== undefined && p.throughput !== null);
      if (curve.length === 0) return { height: 1, children: [] };
      const scale = rounded(Math.max(...curve.map((p) => p.throughput), throughput()) * 1.15);
      const x = (ms) => left + (width - left - 8) * toPosition(ms) / 100;
      const y = (value) => top + (height - top - bottom) * (1 - Math.min(value, scale.end) / scale.end);
      const line = curve.map((p) => `${x(p.ms)} ${y(p.throughput)}`).join(' L');
      const band = [...curve.map((p) => `${x(p.ms)} ${y(p.throughput_high)}`), ...curve.toReversed().map((p) => `${x(p.ms)} ${y(p.throughput_low)}`)].join(' L');
      const at = asked().rtt ?? group.rtt, there = predict(group, asked());
      const children = [
        scale.marks.map((mark) => [draw('line', { class: 'axis', x1: left, x2: width, y1: y(mark), y2: y(mark) }), draw('text', { x: left - 6, y: y(mark) + 4, 'text-anchor': 'end' }, figure(mark))]),
        [0.1, 1, 10, 100].map((ms) => draw('text', { x: x(ms), y: height - 20, 'text-anchor': 'middle' }, duration(ms))),
        draw('text', { x: (left + width) / 2, y: height - 3, 'text-anchor': 'middle' }, 'round trip'),
        draw('text', { x: 0, y: 10 }, 'tx/s'),
        draw('path', { class: 'band', d: `M${band} Z` }), draw('path', { class: 'line', d: `M${line}` }),
        draw('circle', { class: 'now', cx: x(group.rtt), cy: y(throughput()), r: 5 }, draw('title', {}, 'as it is')),
        there ? draw('circle', { class: 'dot', cx: x(at), cy: y(there.throughput), r: 7 }, draw('title', {}, 'predicted')) : null];
      return { height, children };
    };
    const again = picture(chart, 'Predicted transactions per second by round trip, with bounds', paint);
    const update = () => {
      const want = asked();
      const p = predict(group, want);
      rttSays.textContent = group.rtt === null ? 'not known' : want.rtt === null ? `${duration(group.rtt)}, as it is` : duration(want.rtt);
      batchSays.textContent = want.batch === null ? '1, as it is' : String(want.batch);
      rtt.setAttribute('aria-valuetext', rttSays.textContent);
      batch.setAttribute('aria-valuetext', batchSays.textContent);
      const changed = want.rtt !== null || want.batch !== null;
      answer.replaceChildren(...(p === null ? ['Nothing can be predicted for these clients.'] : !changed
        ? [`${appOf(group)} gets ${figure(throughput())} transactions per second done, each in ${duration(group.transaction_time)}. Move a slider.`]
        : ['', el('strong', {}, `${figure(p.throughput)} transactions per second`), ` instead of ${figure(throughput())} (between ${figure(p.throughput_low)} and ${figure(p.throughput_high)}), each in ${duration(p.predicted_time)} instead of ${duration(group.transaction_time)}: `,
          el('strong', {}, `\u00d7 ${figure(p.throughput / throughput())}`), '.']));
      answer.dataset.throughput = p?.throughput ?? '';
      again();
    };
    const choose = () => {
      group = groups[Number(select.value)];
      moved = false;
      batch.value = 1;
      rtt.disabled = group.rtt === null;
      rtt.value = toPosition(Math.max(group.rtt ?? LOW, LOW));
      fixed.textContent = `Now: ${figure(group.busy_sessions)} busy, ${figure(group.statements)} statements and ${figure(group.round_trips)} round trips per transaction.`;
      update();
    };
    select.addEventListener('change', choose);
    rtt.addEventListener('input', () => { moved = true; update(); });
    batch.addEventListener('input', update);
    choose();
  }

  // --- settings and limits -------------------------------------------------------------------

  function limits() {
    const list = [
      `The figures are of the last ${duration(report.window_time)}; those of blockers, distributions and failed connections are since ${info.stats_reset ? moment(info.stats_reset).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' }) : 'the server was started'}.`,
      `The account itself is not sampled; the parts of execution, lock waits and busy sessions are, every ${setting('pgnetlat.sample_interval')}.`,
      `A wait outside a transaction is idle if it is longer than ${setting('pgnetlat.idle_threshold')} (pgnetlat.idle_threshold).`,
      'The round trip is the shortest that the kernel has seen in the last five minutes. If there is a proxy or a load balancer, the round trip is the one to it, not to the client.',
      `The figures were read one after another while the server worked, so they may differ by a moment. ${count(info.processors, 'CPU', 'CPUs')}, max_connections ${setting('max_connections')}.`,
    ];
    const changed = data.settings.filter((s) => s.ours && !s.is_default).map((s) => `${s.name} = ${s.value || "''"}`);
    if (data.settings.length) list.push(changed.length ? `Not at their defaults: ${changed.join(', ')}.` : 'All settings of pgnetlat are at their defaults.');
    if (report.hidden_groups > 0) list.push(`${count(report.hidden_groups, 'client group is', 'client groups are')} hidden from the role ${report.role}.`);
    for (const [what, evicted, max] of [['client groups', info.clients_evicted, 'max_clients'], ['statements', info.statements_evicted, 'max_statements'], ['holders of locks', info.blockers_evicted, 'max_blockers']]) {
      if (evicted > 0) list.push(`${figure(evicted)} ${what} were evicted, because their table was full: raise pgnetlat.${max}.`);
    }
    if (setting('compute_query_id') === 'off') list.push('compute_query_id is off: statements cannot be told apart.');
    byId('limits').append(...list.map((text) => el('li', {}, text)));
    const row = (s) => [s.name, el('span', { class: s.is_default ? '' : 'changed' }, s.value === '' ? '(empty)' : s.value), s.short_desc];
    byId('settings').append(el('details', {}, el('summary', {}, 'All settings'),
      table('Settings; bold: not the default', [['Setting', ''], ['value', ''], ['', 'text']], data.settings.map(row), 'settings')));
    byId('footer').append(el('p', {}, `pgnetlat ${info.version} \u00b7 made by `, el('code', {}, 'SELECT pgnetlat_report()'), ` as ${report.role} \u00b7 the figures are in this file as JSON, and from `, el('code', {}, 'pgnetlat_report_data()'), '.'));
  }

  if (document.documentElement.dataset.ready) document.body.replaceWith(blank.cloneNode(true));
  day();
  summary();
  warnings();
  findings();
  legend();
  clients();
  history();
  waiting();
  now();
  blockers();
  histograms();
  statements();
  pools();
  setup();
  whatIf();
  limits();
  document.documentElement.dataset.ready = 'yes';
}

// A character that turns the direction of a text would also turn what stands beside it.
const now = JSON.parse(byId('data').textContent,
  (_, value) => (typeof value === 'string' ? value.replace(/[\u202a-\u202e\u2066-\u2069]/g, '\ufffd') : value));
show(now, now.past && { ...now.past, now });
