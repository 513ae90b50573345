//! The labels of the children, and the selectors that follow from them.

use super::shape::Map;

/// What every Pod of every Task is, in `app.kubernetes.io/name`.
const APPLICATION: &str = "task";
/// The label that says who made an object, and its value.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "task-operator");

/// Selects every child of every Task; the watches use it.
pub const MANAGED_BY_SELECTOR: &str = "app.kubernetes.io/managed-by=task-operator";

/// The labels of each child of the Task `task`, and of its Pods.
pub fn labels(task: &str) -> Map {
    let mut labels = selector(task);
    labels.insert("app.kubernetes.io/component".to_owned(), "server".to_owned());
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    labels.insert("app.kubernetes.io/part-of".to_owned(), task.to_owned());
    labels
}

/// What selects the Pods of the Task `task`. It must never change: the selector
/// of a Deployment cannot be changed, and two Deployments must not share one.
pub fn selector(task: &str) -> Map {
    [("app.kubernetes.io/name", APPLICATION), ("app.kubernetes.io/instance", task)]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// The same as a list request takes it, and as the scale subresource shows it.
pub fn selector_text(task: &str) -> String {
    format!("app.kubernetes.io/instance={task},app.kubernetes.io/name={APPLICATION}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selector_is_that_of_every_version_of_the_operator() {
        let selector = selector("web");
        let pairs: Vec<_> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(pairs.join(","), "app.kubernetes.io/instance=web,app.kubernetes.io/name=task");
        assert_eq!(pairs.join(","), selector_text("web"));
    }

    #[test]
    fn the_watches_see_what_is_labelled() {
        let (key, value) = MANAGED_BY_SELECTOR.split_once('=').unwrap();
        assert_eq!(labels("web").get(key).map(String::as_str), Some(value));
    }
}
