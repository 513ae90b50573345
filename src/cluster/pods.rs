//! The worst fault among a Task's Pods, as a sentence.

use serde::Deserialize;

use crate::supervisor::state::PodFault;

/// A list of Pods, with what tells why they are not ready.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodList {
    items: Vec<Pod>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pod {
    metadata: Metadata,
    status: PodStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodStatus {
    conditions: Vec<Condition>,
    init_container_statuses: Vec<ContainerStatus>,
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerStatus {
    name: String,
    ready: bool,
    restart_count: i32,
    state: ContainerState,
    last_state: ContainerState,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    waiting: Option<Waiting>,
    terminated: Option<Terminated>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: String,
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Terminated {
    exit_code: i32,
    reason: String,
    message: String,
}

/// How bad a fault is: what no waiting cures is worse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Waits,
    Restarts,
    CannotStart,
}

/// The worst fault; of equally bad ones that of the Pod whose name is first,
/// so that the answer does not change with the order of the list.
pub fn worst_fault(list: &PodList) -> Option<Box<PodFault>> {
    let mut faults: Vec<_> =
        list.items.iter().filter_map(|pod| Some((fault(pod)?, &pod.metadata.name))).collect();
    faults.sort_by(|((a, _), first), ((b, _), second)| b.cmp(a).then_with(|| first.cmp(second)));
    let ((_, fault), name) = faults.into_iter().next()?;
    let message = format!("Pod {name}: {}", fault.message).into();
    Some(Box::new(PodFault { message, ..fault }))
}

fn fault(pod: &Pod) -> Option<(Severity, PodFault)> {
    let status = &pod.status;
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses);
    containers.filter(|container| !container.ready).find_map(container_fault).or_else(|| unscheduled(status))
}

fn container_fault(container: &ContainerStatus) -> Option<(Severity, PodFault)> {
    let name = &container.name;
    let ended = container.state.terminated.as_ref().or(container.last_state.terminated.as_ref());
    let exit = || {
        ended.map(|end| {
            let said = end.message.trim();
            let said = if said.is_empty() { String::new() } else { format!(" ({said})") };
            format!("last exit code {}{said}, {} restarts", end.exit_code, container.restart_count)
        })
    };
    match (&container.state.waiting, ended) {
        (Some(waiting), _) if waiting.reason == "CrashLoopBackOff" => {
            let how = exit().unwrap_or_else(|| format!("{} restarts", container.restart_count));
            Some(found(
                Severity::Restarts,
                "CrashLoopBackOff",
                format!("container {name} keeps crashing: {how}"),
            ))
        }
        (Some(waiting), _) if !matches!(&*waiting.reason, "" | "ContainerCreating" | "PodInitializing") => {
            let text = format!("container {name} cannot start: {}: {}", waiting.reason, waiting.message);
            Some(found(Severity::CannotStart, &waiting.reason, text))
        }
        (None, Some(end)) if end.exit_code != 0 || container.state.terminated.is_some() => {
            let reason = if end.reason.is_empty() { "Error" } else { &end.reason };
            Some(found(Severity::Restarts, reason, format!("container {name} stopped: {}", exit()?)))
        }
        _ => None,
    }
}

fn unscheduled(status: &PodStatus) -> Option<(Severity, PodFault)> {
    let condition = status
        .conditions
        .iter()
        .find(|condition| condition.r#type == "PodScheduled" && condition.status == "False")?;
    let reason = if condition.reason.is_empty() { "Unschedulable" } else { &condition.reason };
    Some(found(Severity::Waits, reason, format!("cannot be scheduled: {}", condition.message)))
}

fn found(severity: Severity, reason: &str, message: String) -> (Severity, PodFault) {
    (severity, PodFault { reason: reason.to_owned().into(), message: message.into() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn worst(pods: serde_json::Value) -> Option<(String, String)> {
        let list: PodList = serde_json::from_value(json!({ "items": pods })).unwrap();
        worst_fault(&list).map(|fault| (fault.reason.to_string(), fault.message.to_string()))
    }

    #[test]
    fn pods_that_only_start_have_no_fault() {
        assert_eq!(worst(json!([])), None);
        assert_eq!(
            worst(json!([{"metadata": {"name": "a"}, "status": {"containerStatuses": [
                {"name": "task", "state": {"waiting": {"reason": "ContainerCreating"}}}]}}])),
            None
        );
    }

    #[test]
    fn a_crash_loop_is_told_with_exit_code_and_last_message() {
        let (reason, message) = worst(json!([{"metadata": {"name": "a"}, "status": {"containerStatuses": [
            {"name": "task", "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
             "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "message": "no database\n"}}}]}}]))
        .unwrap();
        assert_eq!(reason, "CrashLoopBackOff");
        assert_eq!(
            message,
            "Pod a: container task keeps crashing: last exit code 3 (no database), 4 restarts"
        );
    }

    #[test]
    fn the_worst_of_several_is_named_whatever_their_order() {
        let unscheduled = json!({"metadata": {"name": "a"}, "status": {"conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]}});
        let pull = json!({"metadata": {"name": "b"}, "status": {"containerStatuses": [
            {"name": "task", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}]}});
        for pods in [json!([unscheduled, pull]), json!([pull, unscheduled])] {
            let (reason, message) = worst(pods).unwrap();
            assert_eq!(reason, "ImagePullBackOff");
            assert_eq!(message, "Pod b: container task cannot start: ImagePullBackOff: not found");
        }
    }
}
