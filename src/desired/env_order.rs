//! The order of a container's environment.
//!
//! Kubernetes expands `$(VAR)` in a value only if VAR was defined earlier in
//! the list. So what a value refers to comes before it; apart from that the
//! order is that of the names, and the same for the same set of entries.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

/// The entries of `env`, each after those its value refers to. Where entries
/// refer to each other in a circle no order is right, and that of the names is kept.
pub fn ordered(env: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    if !env.values().any(|value| value.contains("$(")) {
        return env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    }
    let names: Vec<&str> = env.keys().map(String::as_str).collect();
    let places: HashMap<&str, usize> = names.iter().copied().zip(0..).collect();
    let needs: Vec<(usize, usize)> = env
        .values()
        .enumerate()
        .flat_map(|(place, value)| {
            references(value)
                .filter_map(|needed| places.get(needed).copied())
                .map(move |needed| (place, needed))
        })
        .collect();
    let order = needed_first(names.len(), &needs);
    order.into_iter().map(|place| (names[place], env[names[place]].as_str())).collect()
}

/// The numbers below `count`, each after those it needs, as far as that can be;
/// lower ones first. Those of a circle stand together.
fn needed_first(count: usize, needs: &[(usize, usize)]) -> Vec<usize> {
    let mut graph = DiGraph::<(), ()>::with_capacity(count, needs.len());
    for _ in 0..count {
        graph.add_node(());
    }
    graph.extend_with_edges(
        needs.iter().map(|&(user, needed)| (NodeIndex::new(user), NodeIndex::new(needed))),
    );
    let mut circles: Vec<Vec<usize>> = kosaraju_scc(&graph)
        .into_iter()
        .map(|circle| circle.into_iter().map(NodeIndex::index).collect())
        .collect();
    let mut circle_of = vec![0; count];
    for (number, circle) in circles.iter_mut().enumerate() {
        circle.sort_unstable();
        circle.iter().for_each(|&member| circle_of[member] = number);
    }
    let between: BTreeSet<(usize, usize)> = needs
        .iter()
        .map(|&(user, needed)| (circle_of[needed], circle_of[user]))
        .filter(|(needed, user)| needed != user)
        .collect();
    let mut waits_for = vec![0_usize; circles.len()];
    between.iter().for_each(|&(_, user)| waits_for[user] += 1);
    let is_ready = |number: &usize| waits_for[*number] == 0;
    let mut ready: BinaryHeap<Reverse<(usize, usize)>> =
        (0..circles.len()).filter(is_ready).map(|number| Reverse((circles[number][0], number))).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(Reverse((_, number))) = ready.pop() {
        order.extend(&circles[number]);
        for &(_, user) in between.range((number, 0)..(number + 1, 0)) {
            waits_for[user] -= 1;
            if waits_for[user] == 0 {
                ready.push(Reverse((circles[user][0], user)));
            }
        }
    }
    order
}

/// The names in `$(NAME)`; `$$` stands for a dollar sign and begins no reference.
fn references(value: &str) -> impl Iterator<Item = &str> {
    let mut rest = value;
    std::iter::from_fn(move || {
        loop {
            let after = &rest[rest.find('$')? + 1..];
            match after.as_bytes().first()? {
                b'(' => match after.find(')') {
                    Some(end) => {
                        rest = &after[end + 1..];
                        return Some(&after[1..end]);
                    }
                    None => rest = &after[1..],
                },
                b'$' => rest = &after[1..],
                _ => rest = after,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(env: &[(&str, &str)]) -> Vec<String> {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ordered(&env).into_iter().map(|(name, _)| name.to_owned()).collect()
    }

    #[test]
    fn without_references_the_names_order() {
        assert_eq!(names(&[("B", "1"), ("A", "2"), ("C", "$X $ (A)")]), ["A", "B", "C"]);
    }

    #[test]
    fn what_a_value_refers_to_comes_first() {
        assert_eq!(names(&[("A", "$(Z)/x"), ("M", ""), ("Z", "$(M)")]), ["M", "Z", "A"]);
    }

    #[test]
    fn an_escaped_dollar_is_no_reference() {
        assert_eq!(names(&[("A", "$$(Z)"), ("Z", "")]), ["A", "Z"]);
        assert_eq!(names(&[("A", "$$$(Z)"), ("Z", "")]), ["Z", "A"]);
    }

    #[test]
    fn circles_keep_the_order_of_names() {
        assert_eq!(names(&[("B", "$(A)"), ("A", "$(B)"), ("C", "$(C)")]), ["A", "B", "C"]);
        assert_eq!(names(&[("A", "$(A)"), ("B", "$(missing) $(")]), ["A", "B"]);
        // A needs the circle, and is not part of it.
        assert_eq!(names(&[("A", "$(C)"), ("C", "$(E)"), ("E", "$(C)")]), ["C", "E", "A"]);
    }

    proptest! {
        #[test]
        fn every_entry_stands_once_and_after_what_it_needs(
            env in prop::collection::btree_map("[A-F]", "(\\$\\([A-F]\\)|\\$\\$|x){0,3}", 0..7)
        ) {
            let order = ordered(&env);
            let mut sorted: Vec<_> = order.iter().map(|(name, _)| *name).collect();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, env.keys().map(String::as_str).collect::<Vec<_>>());
            // A needed entry may stand later only if it needs, through others, this one too.
            let place = |name: &str| order.iter().position(|(n, _)| *n == name).unwrap();
            for (name, value) in &env {
                for needed in references(value).filter(|needed| env.contains_key(*needed)) {
                    prop_assert!(place(needed) <= place(name) || reaches(&env, needed, name));
                }
            }
        }
    }

    fn reaches(env: &BTreeMap<String, String>, from: &str, to: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut stack = vec![from];
        while let Some(name) = stack.pop() {
            if name == to {
                return true;
            }
            if seen.insert(name)
                && let Some((_, value)) = env.get_key_value(name)
            {
                stack.extend(references(value));
            }
        }
        false
    }

    #[test]
    fn a_thousand_entries_in_a_chain_are_ordered_at_once() {
        let env: BTreeMap<_, _> =
            (0..1000).map(|i| (format!("V{i:04}"), format!("$(V{:04})", i + 1))).collect();
        let order = ordered(&env);
        assert_eq!(order[0].0, "V0999");
        assert_eq!(order[999].0, "V0000");
    }
}
