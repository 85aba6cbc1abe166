// What the JavaScript programs share: the command line, and parts of their cases.
//
//	program --list              the names of its cases, one per line
//	program CASE...             run them, each as a role of its own

export const THINK = 30;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function main(cases) {
  const names = process.argv.slice(2);
  if (names[0] === '--list') {
    console.log(Object.keys(cases).join('\n'));
    return;
  }
  for (const name of names) {
    try {
      await cases[name](`${process.env.DRIVER}_${name}`);
      console.log(`done ${name}`);
    } catch (error) {
      console.log(`error ${name}: ${error.message}`);
    }
  }
}

export async function repeat(count, body) {
  for (let i = 0; i < count; i++) await body(i);
}

export async function fails(promise) {
  try {
    await promise;
  } catch {
    return;
  }
  throw new Error('no error');
}

// Lines for COPY sink FROM STDIN.
export const rows = (count) => Array.from({ length: count }, (_, i) => `${i}\t${'x'.repeat(100)}\n`);

// Modules are installed outside of the source tree.
export async function load(name) {
  const { createRequire } = await import('node:module');
  return createRequire(`${process.env.LAB_CLIENTS}/`)(name);
}
