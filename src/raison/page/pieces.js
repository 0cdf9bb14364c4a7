// The text of an explanation in pieces, as raison/show/html/explanation_words.py cuts it.

function piecesOf({ text, pieces }) {
  const signs = Array.from(text); // lengths count code points, not UTF-16 units
  let end = 0;
  return pieces.map(([length, units, kind = "plain"]) => {
    end += length;
    return { text: signs.slice(end - length, end).join(""), units, kind };
  });
}

// Passages of {name, pieces} from what is said about an explanation.
export const passagesOf = ({ passages }) => passages.map((each) => ({ name: each.name, pieces: piecesOf(each) }));
