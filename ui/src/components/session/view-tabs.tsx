import { memo } from "react";
import { Icon } from "../icons";
import { Menu, type MenuItem } from "../menu";
import { Button } from "../ui";
import { Tabs } from "./panels";

/** Whether a panel fits beside the conversation. Otherwise it opens over the conversation. */
export const isWide = () => matchMedia("(min-width: 64rem)").matches;

interface Props<T extends string> {
  names: readonly T[];
  labels: Record<T, string>;
  current: T;
  onChange: (view: T) => void;
  /** The number of events. */
  head: number;
  panelOpen: boolean;
  onPanel: () => void;
  /** What the menu of the conversation offers. */
  reading: MenuItem[];
}

function AnyTabs<T extends string>(p: Props<T>) {
  const { names, labels, current, onChange, head, panelOpen, onPanel, reading } = p;
  return (
    <div className="not-zen flex items-stretch bg-panel">
      <div className="min-w-0 flex-1">
        <Tabs
          label="Views of the session"
          names={names}
          labels={labels}
          counts={{ events: head.toLocaleString("en") } as Partial<Record<T, string>>}
          current={current}
          onChange={onChange}
        />
      </div>
      {current === "conversation" && (
        <div className="flex items-center border-b border-line px-2">
          <Menu label="How the conversation is shown" items={reading}>
            <Icon name="list" />
          </Menu>
          <Button look="ghost" className="h-7" aria-pressed={panelOpen} onClick={onPanel} title="p">
            Panel
          </Button>
        </div>
      )}
    </div>
  );
}

/** The tabs of a session's views, and the button that toggles the panel. */
export const ViewTabs = memo(AnyTabs) as unknown as typeof AnyTabs;
