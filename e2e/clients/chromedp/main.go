package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"
)

func main() {
	for _, way := range []string{"CDP_WS_URL", "CDP_HTTP_URL"} {
		drive(os.Getenv(way))
	}
}

func drive(address string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ctx, cancel = remote.NewAllocator(ctx, address)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	err := chromedp.Do(ctx,
		chromedp.Navigate(os.Getenv("SITE")),
		chromedp.SendKeys("#q", "sent"),
		chromedp.Click("#send"),
	)
	if err != nil {
		log.Fatal(address[:4], ": ", err)
	}
	title, err := chromedp.Run(ctx, chromedp.Title())
	if err != nil || title != "sent" {
		log.Fatal("title ", title, err)
	}
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil || string(picture[1:4]) != "PNG" {
		log.Fatal("picture ", err)
	}
}
