/** Pictures made fit for a model: upright, of modest size, and without where they were taken. */

/** The longest side in pixels: models see no more. */
export const LONGEST = 1568;
const QUALITY = 0.85;

/** The size that fits, in whole pixels; a small picture keeps its own. */
export function fitPicture(width: number, height: number): [number, number] {
  const scale = Math.min(1, LONGEST / Math.max(width, height, 1));
  return [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
}

/**
 * A picture as a JPEG that is no larger than it must be; nothing of its metadata is kept.
 *
 * @throws DOMException when the browser cannot read it
 */
export async function shrinkPicture(file: Blob): Promise<Blob> {
  const picture = await createImageBitmap(file, { imageOrientation: "from-image" });
  try {
    const [width, height] = fitPicture(picture.width, picture.height);
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    const pen = canvas.getContext("2d");
    if (!pen) throw new DOMException("no canvas", "InvalidStateError");
    pen.fillStyle = "#fff"; // a JPEG has no transparency
    pen.fillRect(0, 0, width, height);
    pen.drawImage(picture, 0, 0, width, height);
    return await new Promise((resolve, reject) => {
      canvas.toBlob(
        (made) => (made ? resolve(made) : reject(new DOMException("no blob", "EncodingError"))),
        "image/jpeg",
        QUALITY,
      );
    });
  } finally {
    picture.close();
  }
}
