import { Icon } from "@/components/icons";

/** The large button over the first moment of a recording, until somebody plays it. */
export function Poster({ title, onPlay }: { title: string; onPlay: () => void }) {
  return (
    <button
      type="button"
      data-keys-pass
      aria-label={`Play the recording: ${title}`}
      onClick={onPlay}
      className="poster absolute inset-0 z-20 grid cursor-pointer place-items-center"
    >
      <span className="grid size-20 place-items-center rounded-full bg-accent text-on-accent shadow-lg">
        <Icon name="play" className="size-9" />
      </span>
    </button>
  );
}
