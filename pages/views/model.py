"""What will be estimated, how, and at what cost; and, while a run is active, whether it is getting there."""

from pages.components.live import live_panel
from pages.components.navigation import header
from pages.components.planning import plan_page
from pages.components.services import still_there
from pages.components.session import workspace

header("model")
if still_there(workspace().run):
    live_panel(workspace().run)
else:
    plan_page()
