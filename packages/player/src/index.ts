// @tapedeck/player: registers <tapedeck-player>.
import { TapedeckPlayer } from "./element.ts";

export { TapedeckPlayer };

if (!customElements.get("tapedeck-player")) customElements.define("tapedeck-player", TapedeckPlayer);
