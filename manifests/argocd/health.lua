-- The health of a Task, for Argo CD: the value of
-- resource.customizations.health.task.example.io_Task in the ConfigMap argocd-cm.
-- It says what kstatus says (Helm, Flux): both read the same conditions.
local health = { status = "Progressing", message = "the operator has not seen this generation yet" }

if obj.metadata.deletionTimestamp ~= nil then
  health.message = "being deleted"
  return health
end

local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return health
end

for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Stalled" and condition.status == "True" then
    health.status = "Degraded"
    health.message = condition.message
    return health
  end
  if condition.type == "Ready" then
    health.message = condition.message
    if condition.status == "True" then
      health.status = "Healthy"
    end
  end
end
return health
