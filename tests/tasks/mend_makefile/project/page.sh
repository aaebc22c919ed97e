# Makes a page of a text: page.sh FILE
title=$(head -n 1 "$1")
printf '<h1>%s</h1>\n<pre>\n' "$title"
tail -n +2 "$1"
printf '</pre>\n'
