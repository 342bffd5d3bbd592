/** Which slash commands fit what is being written. No page. */

/** @typedef {import("./types.js").Offer} Offer */

/**
 * List the commands that begin as the text does; none once their name is written out and something follows.
 * @param {readonly Offer[]} offers
 * @param {string} text
 */
export function fitting(offers, text) {
  if (!/^\/[^\s/]*$/.test(text)) return [];
  const begun = text.slice(1).toLowerCase();
  return offers.filter((offer) => offer.name.toLowerCase().startsWith(begun));
}

/** Write a command out as a text to go on with. @param {Offer} offer */
export const written = (offer) => (offer.argumentHint ? `/${offer.name} ` : `/${offer.name}`);
