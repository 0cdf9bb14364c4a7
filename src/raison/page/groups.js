// Explanations as raison/show/html/page_data.py sends them: records, what is said about each, and which are drawn together.

import { story } from "./rationale.js";
import { renderExplanation } from "./render.js";
import { renderMatrix } from "./matrix.js";
import { renderComparison } from "./compare.js";

// Records of one text get one encoding; one that is a number is that of the record at this place.
function shareEncodings(explanations) {
  const known = new Map();
  for (const each of explanations) {
    if (typeof each.encoding === "number") {
      each.encoding = explanations[each.encoding].encoding;
      continue;
    }
    const text = JSON.stringify(each.encoding);
    if (known.has(text)) each.encoding = known.get(text);
    else known.set(text, each.encoding);
  }
}

// Groups of {explanation, words}.
export function groupsOf({ explanations, words, groups }) {
  shareEncodings(explanations);
  return groups.map(({ kind, members, words: said }) => ({ kind, words: said,
    members: members.map((place) => ({ explanation: explanations[place], words: words[place] })) }));
}

const drawMember = ({ explanation, words }, container, text = true) => (
  renderExplanation(explanation, words, container, story(explanation, words.rationale, text)));

// A group as what it is: rationales of several targets, several methods, or one explanation, which is returned.
export function drawGroup({ kind, members, words }, container) {
  if (kind === "single") return drawMember(members[0], container);
  if (kind === "methods") renderComparison(members, words, container);
  else renderMatrix(members, words, container, (member, below) => drawMember(member, below, false));
  return null;
}
