//! The parts of a Markdown page that are written by this program, between markers:
//! `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`, each on a line of its own.

use anyhow::{bail, ensure, Context, Result};

/// The page with each part in its place. A part without a place, and a place without a part, is an
/// error: it would be a table that nobody sees, or one that stays as it was.
pub fn fill(page: &str, parts: &[(String, String)]) -> Result<String> {
    let mut filled = String::new();
    let mut places = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        filled += line;
        filled.push('\n');
        let Some(name) = marker(line, "bench:") else { continue };
        let (_, text) = parts
            .iter()
            .find(|(part, _)| part == name)
            .with_context(|| format!("the page has a place for {name}, which was not measured"))?;
        places.push(name);
        filled += text.trim_end();
        filled.push('\n');
        let end = lines.find(|line| marker(line, "/bench:") == Some(name));
        filled += end.with_context(|| format!("the place for {name} has no end"))?;
        filled.push('\n');
    }
    if let Some((name, _)) = parts.iter().find(|(name, _)| !places.contains(&&**name)) {
        bail!("the page has no place for {name}");
    }
    let mut unique = places.clone();
    unique.sort_unstable();
    unique.dedup();
    ensure!(unique.len() == places.len(), "the page has two places of one name");
    Ok(filled)
}

fn marker<'a>(line: &'a str, kind: &str) -> Option<&'a str> {
    line.trim().strip_prefix("<!-- ")?.strip_prefix(kind)?.strip_suffix(" -->")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n<!-- bench:a -->\nold\n\nolder\n<!-- /bench:a -->\nend\n";

    fn part(name: &str, text: &str) -> (String, String) {
        (name.to_owned(), text.to_owned())
    }

    #[test]
    fn text_between_markers_is_replaced() {
        let filled = fill(PAGE, &[part("a", "new\n")]).unwrap();
        assert_eq!(filled, "# Page\n<!-- bench:a -->\nnew\n<!-- /bench:a -->\nend\n");
        assert_eq!(fill(&filled, &[part("a", "new")]).unwrap(), filled);
    }

    #[test]
    fn places_of_a_page_and_parts_to_fill_in_must_match() {
        assert!(fill(PAGE, &[]).is_err());
        assert!(fill(PAGE, &[part("a", ""), part("b", "")]).is_err());
        assert!(fill("<!-- bench:a -->\n", &[part("a", "")]).is_err());
        assert!(fill(&format!("{PAGE}{PAGE}"), &[part("a", "")]).is_err());
    }
}
