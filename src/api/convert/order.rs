//! An order of names as a short text: which of the sorted names comes first,
//! which second, and so on, in two characters each, after a digest of the names.
//!
//! The digest tells whether the names are still the same ones. If two sets had
//! the same by chance, the list would be in a strange order, and nothing else.

/// Digits of base 64, those of RFC 4648 for URLs.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// What two digits can count.
const MOST: usize = 64 * 64;

/// The order of these names, unless they are sorted, or more than a Task may have by far.
pub(super) fn remember(names: &[String]) -> Option<String> {
    if names.is_sorted() || names.len() > MOST {
        return None;
    }
    let mut by_name: Vec<usize> = (0..names.len()).collect();
    by_name.sort_by_key(|&position| &names[position]);
    let mut ranks = vec![0; names.len()];
    for (rank, &position) in by_name.iter().enumerate() {
        ranks[position] = rank;
    }
    let sorted = by_name.iter().map(|&position| names[position].as_str());
    let mut text = digest(sorted);
    for rank in ranks {
        text.extend([DIGITS[rank / 64], DIGITS[rank % 64]].map(char::from));
    }
    Some(text)
}

/// Where each of the sorted `names` stands in the order that `text` remembers.
/// None if it is not of these names, or no order.
pub(super) fn positions(text: &str, names: &[&str]) -> Option<Vec<usize>> {
    let digits = text.strip_prefix(&digest(names.iter().copied()))?.as_bytes();
    if digits.len() != 2 * names.len() {
        return None;
    }
    let digit = |byte: u8| DIGITS.iter().position(|&digit| digit == byte);
    let mut positions = vec![None; names.len()];
    for (position, pair) in digits.chunks_exact(2).enumerate() {
        let rank = digit(pair[0])? * 64 + digit(pair[1])?;
        if positions.get_mut(rank)?.replace(position).is_some() {
            return None;
        }
    }
    positions.into_iter().collect()
}

/// FNV-1a of the names in this order, in hexadecimal, and a dot. It stands in
/// objects, so it is never changed.
fn digest<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    // 0xff is in no UTF-8, so names cannot run into each other.
    for byte in names.flat_map(|name| name.bytes().chain([0xff])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    format!("{hash:016x}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn sorted_names_need_no_memory() {
        assert_eq!(remember(&[]), None);
        assert_eq!(remember(&names("A B C")), None);
    }

    #[test]
    fn an_order_is_two_characters_per_name_and_reads_the_same_for_ever() {
        let text = remember(&names("C A B")).unwrap();
        assert_eq!(text, format!("{}ACAAAB", digest(["A", "B", "C"].into_iter())));
        assert_eq!(digest(["A", "B", "C"].into_iter()), "493ede77b9c6a41c.");
        assert_eq!(positions(&text, &["A", "B", "C"]), Some(vec![1, 2, 0]));
    }

    #[test]
    fn an_order_of_other_names_or_no_order_is_forgotten() {
        let text = remember(&names("C A B")).unwrap();
        assert_eq!(positions(&text, &["A", "B", "D"]), None);
        assert_eq!(positions(&text, &["A", "B"]), None);
        let digest = digest(["A", "B"].into_iter());
        for wrong in ["", "AB", "AAAA", "ABAC", "A!AA", "ABAAAA", "é", "____"] {
            assert_eq!(positions(&format!("{digest}{wrong}"), &["A", "B"]), None, "{wrong}");
        }
        assert_eq!(positions(&format!("{digest}ABAA"), &["A", "B"]), Some(vec![1, 0]));
    }
}
