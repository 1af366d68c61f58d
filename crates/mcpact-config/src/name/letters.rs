//! Letters of other alphabets in those of ASCII, as people write them who have no others.

/// Latin letters with marks, and letters that are several in one.
const LETTERS: &[(&str, &str)] = &[
    ("a", "àáâãäåāăąǎạảấầẩẫậắằẳẵặ"),
    ("ae", "æ"),
    ("c", "çćĉċč"),
    ("d", "ďđð"),
    ("e", "èéêëēĕėęěẹẻẽếềểễệ"),
    ("g", "ĝğġģ"),
    ("h", "ĥħ"),
    ("i", "ìíîïĩīĭįıİǐịỉ"),
    ("j", "ĵ"),
    ("k", "ķ"),
    ("l", "ĺļľŀł"),
    ("n", "ñńņňŋ"),
    ("o", "òóôõöøōŏőơǒọỏốồổỗộớờởỡợ"),
    ("oe", "œ"),
    ("r", "ŕŗř"),
    ("s", "śŝşšș"),
    ("ss", "ß"),
    ("t", "ţťŧț"),
    ("th", "þ"),
    ("u", "ùúûüũūŭůűųưǔụủứừửữự"),
    ("w", "ŵẁẃẅ"),
    ("y", "ýÿŷỳỵỷỹ"),
    ("z", "źżž"),
];

/// A text with the letters of ASCII in the place of those that are written with them elsewhere. Marks that stand behind
/// their letter are left out; what is not known stays.
pub(super) fn in_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let is_mark = |c: char| ('\u{300}'..='\u{36f}').contains(&c);
    for c in text.chars().filter(|c| !is_mark(*c)) {
        match spelled(c) {
            Some(letters) if c.is_uppercase() => {
                let mut letters = letters.chars();
                out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
                out.extend(letters);
            }
            Some(letters) => out.push_str(letters),
            None => out.push(c),
        }
    }
    out
}

fn spelled(c: char) -> Option<&'static str> {
    if c.is_ascii() {
        return None;
    }
    let lower = c.to_lowercase().next()?;
    let row = LETTERS
        .iter()
        .find(|(_, letters)| letters.contains([c, lower]));
    row.map(|(ascii, _)| *ascii)
}

#[cfg(test)]
mod tests {
    use super::in_ascii;

    #[test]
    fn letters_with_marks_lose_them() {
        for (theirs, ours) in [
            ("été", "ete"),
            ("e\u{301}te\u{301}", "ete"),
            ("Ærø Straße", "Aero Strasse"),
            ("ŁÓDŹ Þór İ", "LODZ Thor I"),
            ("tiếng Việt", "tieng Viet"),
            ("файлы 文件", "файлы 文件"),
        ] {
            assert_eq!(in_ascii(theirs), ours);
        }
    }
}
