# Whether there is a page with a title for each text: check.sh FOLDER
for text in texts/*.txt; do
  page="$1/$(basename "$text" .txt).html"
  title=$(head -n 1 "$text")
  grep -qF "<h1>$title</h1>" "$page" || { echo "$page is wrong or missing"; exit 1; }
done
echo "all pages are there"
