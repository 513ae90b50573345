//! The tests by theme. Each is an async function of the shared bed.

use std::pin::Pin;
use std::sync::Arc;

use super::Bed;

type Test = fn(Arc<Bed>) -> Pin<Box<dyn Future<Output = ()>>>;

macro_rules! tests {
    ($($theme:ident { $($name:ident),* $(,)? })*) => {
        $(mod $theme;)*

        /// All of them by name.
        pub(crate) fn all() -> Vec<(&'static str, Test)> {
            vec![$($((
                concat!(stringify!($theme), "::", stringify!($name)),
                (|bed| Box::pin(async move {
                    let space = bed.space(stringify!($name)).await;
                    $theme::$name(&bed, &space).await;
                })) as Test,
            )),*),*]
        }
    };
}

tests! {
    lifecycle {
        the_sample_becomes_ready_as_kubectl_shows_it,
        an_empty_task_gets_all_defaults,
        scale_goes_up_down_and_to_zero,
        an_edit_rolls_out_and_what_left_the_task_leaves_the_children,
        a_background_deletion_takes_the_children_along,
        a_foreground_deletion_takes_the_children_first,
        an_orphaning_deletion_leaves_the_children,
        a_task_made_again_at_once_gets_children_of_its_own,
        the_namespace_can_go_at_any_time,
        probes_and_metrics_tell_of_it,
    }
    drift {
        every_owned_field_comes_back_within_two_seconds,
        every_deleted_child_comes_back_within_two_seconds,
        a_status_that_others_write_comes_back_within_two_seconds,
        a_child_that_lost_its_label_is_repaired,
        a_fight_over_a_field_is_bounded_and_told,
    }
    others {
        a_rollout_restart_stays,
        an_injected_sidecar_stays,
        labels_and_annotations_of_others_stay,
        a_foreign_variable_and_port_stay,
        an_autoscaler_of_the_task_works,
        a_foreign_object_of_each_kind_is_never_touched,
    }
    trouble {
        a_quota_on_deployments_fails_the_task_until_it_goes,
        a_quota_on_pods_fails_the_task_until_it_goes,
        a_policy_that_refuses_the_deployment_is_named,
        pods_that_cannot_be_scheduled_are_named,
        a_terminating_child_is_waited_for,
    }
    kstatus {
        it_says_in_progress_then_current_from_the_first_read_on,
        it_says_failed_then_terminating,
    }
    refused {
        bad_tasks_are_refused_with_the_name_of_the_field,
    }
}
