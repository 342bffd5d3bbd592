/** Who is in front of this page: their credentials, for as long as the tab lives. */

/** @typedef {import("./wire.js").Credentials} Credentials */

const KEY = "tiny-harness.credentials";

/**
 * Take a token out of the address, where `tiny-harness serve` put it, and out of sight at once.
 * @param {Location} location
 * @param {History} history
 * @param {Storage} storage
 * @returns {Credentials}
 */
export function openSession(location, history, storage) {
  const [fragment = "", token = ""] = /^#token=(.*)$/.exec(location.hash) ?? [];
  if (fragment) {
    keepSession(storage, { token: decodeURIComponent(token), participant: "" });
    history.replaceState(null, "", `${location.pathname}${location.search}#/`);
  }
  return readSession(storage);
}

/** @param {Storage} storage @param {Credentials} credentials */
export const keepSession = (storage, credentials) => storage.setItem(KEY, JSON.stringify(credentials));

/** @param {Storage} storage */
export const endSession = (storage) => storage.removeItem(KEY);

/** @param {Storage} storage @returns {Credentials} */
function readSession(storage) {
  try {
    const { token, participant } = JSON.parse(storage.getItem(KEY) ?? "{}");
    return { token: String(token ?? ""), participant: String(participant ?? "") };
  } catch {
    return { token: "", participant: "" };
  }
}
