// Runs simulations away from the page, so that a slider never waits for one. Gets its messages in order.
const ready = createQuicgym();
const bytesOf = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

onmessage = async ({ data }) => {
  const simulator = await ready;
  if (data.policies) {
    const names = data.policies
      .filter(({ name, description, weights }) => simulator.addPolicy(name, description, bytesOf(weights)))
      .map(({ name }) => name);
    postMessage({ controllers: simulator.controllers(), disciplines: simulator.queueDisciplines(), policies: names });
    return;
  }
  const begin = performance.now();
  const result = simulator.run(data.document, data.policy, data.seed, data.traceIntervalMs);
  postMessage({ number: data.number, result, milliseconds: performance.now() - begin });
};
